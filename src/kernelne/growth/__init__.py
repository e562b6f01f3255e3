"""Embeddings of graphs that grow: update them, fold in new nodes, or follow a file of edges."""
