"""``headrace doctor DATASET``: what the files of a dataset are, and what follows for training."""
