"""Embeddings: vectors with node ids and provenance; nearest neighbours; vectors as scikit-learn features."""

from kernelne.embedding.embedding import Embedding

__all__ = ["Embedding"]
