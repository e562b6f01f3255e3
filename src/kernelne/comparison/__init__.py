"""Methods compared on one graph, each run in a process of its own."""
