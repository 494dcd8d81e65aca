"""What programs use: files, datasets, Python steps, exceptions."""
