"""Random numbers: the draws of a recipe, and the generators that steps in Python use."""
