"""Random numbers, random walks on a graph, and the noise distribution of the negatives."""
