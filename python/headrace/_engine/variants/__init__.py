"""Engines of images with several recipes: one engine for each output size, or each transform of joined datasets.

Decisions: 0113.
"""
