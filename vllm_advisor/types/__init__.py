"""Frozen dataclasses named after the field's own terms. No I/O, no maths beyond properties."""
