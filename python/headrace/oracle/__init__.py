"""The oracle: makes the same batches by plain Python, Pillow and torch, to compare the native path with."""
