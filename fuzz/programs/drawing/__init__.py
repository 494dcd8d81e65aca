"""Draws programs, of parts that are source text."""
