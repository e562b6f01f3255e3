"""Graph files, a module for each format; `registry` lists them, `files` reads and writes."""
