"""The model: kernels, the loss in float64, coefficients, defaults, and the embedding made of two tables."""
