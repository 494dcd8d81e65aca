"""Engines of images with several recipes: one engine for each output size; one for all transforms of joined datasets.

Decisions: 0113.
"""
