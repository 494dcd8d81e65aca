"""Augmentation policies: which operations they choose from, how strong each is, and how it changes a PIL image.

Decision: 0024.
"""
