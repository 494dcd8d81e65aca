"""num_workers="auto" against fixed values."""
