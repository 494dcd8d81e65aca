"""Random numbers: the draws of a recipe, and the generators that steps in Python use.

Decisions: 0008, 0023, 0026, 0029, 0071.
"""
