"""The same batches by plain Python, Pillow and torch: what the native path is compared with."""
