"""Graph files: one module per format; `registry` lists them, `files` reads and writes."""
