"""Compare methods on one graph, each in its own process."""
