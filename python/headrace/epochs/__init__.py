"""Epochs: their order, the share of a rank, how far they are, and the state that a checkpoint keeps."""
