"""Link prediction: features of pairs of nodes, and a predictor of new links."""
