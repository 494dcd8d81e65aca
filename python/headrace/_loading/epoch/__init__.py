"""Epochs: their order, each rank's share of it, their progress, and the loader's state for a checkpoint."""
