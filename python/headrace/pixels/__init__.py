"""Arithmetic of boxes and pixels, as torchvision, torch and the installed Pillow do it."""
