"""Augmentation policies as native steps: a choice among operations.

Decisions: 0024, 0029, 0033, 0053, 0066.
"""
