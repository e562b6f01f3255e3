"""Looking at a graph: layouts in the plane, pictures, and the interactive page."""
