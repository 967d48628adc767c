"""One module per rule of check."""
