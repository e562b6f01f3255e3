"""Visualisation: layouts in the plane, maps as image files, and the interactive page."""
