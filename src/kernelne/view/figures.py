"""Matplotlib figures that need no display."""

from __future__ import annotations

from typing import Any

from kernelne.errors import MissingDependencyError


def new_figure(width: float, height: float) -> Any:
    """Return an empty figure, sizes in inches; raise MissingDependencyError without matplotlib."""
    try:
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure
    except ImportError:
        raise MissingDependencyError("matplotlib", "plot") from None
    figure = Figure(figsize=(width, height), layout="constrained")
    FigureCanvasAgg(figure)
    return figure
