"""Training on one NVIDIA GPU, in Triton."""
