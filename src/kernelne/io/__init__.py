"""Read and write files: atomically, with declared sizes checked before allocation, without executing code."""
