"""What all parts share: checks of values, compiled code on disk, free memory, the user's folder, forks."""
