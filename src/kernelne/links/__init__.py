"""Link prediction: features of node pairs, and an estimator that predicts new edges."""
