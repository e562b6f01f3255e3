"""Embedding files; `registry` lists the formats."""
