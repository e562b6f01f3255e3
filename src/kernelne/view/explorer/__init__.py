"""The page in which people look at their graph: one HTML file that needs nothing else."""

from kernelne.view.explorer.page import write_explorer

__all__ = ["write_explorer"]
