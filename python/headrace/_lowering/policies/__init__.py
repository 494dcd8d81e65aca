"""Augmentation policies as native steps: a choice among operations."""
