"""Text files: lines, tokens, words, and guesses at separators and headers."""
