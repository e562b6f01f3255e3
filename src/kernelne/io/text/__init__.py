"""Text files: lines, tokens, columns, words, and guesses at separators and headers."""
