"""What an image is to the code around it: its kind, its tensor, the metadata of its file."""
