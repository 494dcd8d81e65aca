"""Random numbers: those of a recipe, and those of what Python does of a sample."""
