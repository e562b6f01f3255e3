"""Text files: lines, tokens, and detection of separators and headers."""
