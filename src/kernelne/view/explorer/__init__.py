"""The interactive page of an embedding: one self-contained HTML file."""

from kernelne.view.explorer.page import write_explorer

__all__ = ["write_explorer"]
