"""The two ways to a loader's batches: headrace's threads, for images, columns or several fields, or torch's DataLoader.

Decisions: 0007, 0018, 0085.
"""
