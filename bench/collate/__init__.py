"""What a collate_fn costs on the native path, and images of different sizes."""
