"""Arithmetic of boxes and pixels, equal to that of torchvision, torch and the installed Pillow."""
