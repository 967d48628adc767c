"""Reads profiles/ and the files users write, and turns them into types."""
