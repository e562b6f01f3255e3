"""Random walks: random numbers, walks sampled from a graph, the distribution of negatives."""
