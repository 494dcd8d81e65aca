"""The same batches by plain Python, Pillow and torch."""
