"""Scores of vectors: classification, link prediction, clustering."""
