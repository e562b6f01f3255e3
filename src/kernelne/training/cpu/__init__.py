"""Training on the CPU, compiled by Numba."""
