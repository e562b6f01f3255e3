"""kernelne: node embeddings by kernel factorisation of random walks."""

__version__ = "0.1.0"
