"""Files: read and written whole or not at all, checked before memory is taken, never executed."""
