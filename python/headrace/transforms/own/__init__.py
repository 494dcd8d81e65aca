"""Transforms that torchvision does not have.

Decisions: 0019, 0021.
"""
