"""The same batches by plain Python, Pillow and torch.

Decisions: 0021, 0024, 0053.
"""
