"""The model: kernels, the loss in float64, coefficients, defaults, and how tables become the embedding."""
