"""Arithmetic of boxes and pixels, equal to that of torchvision, torch and the installed Pillow.

Decisions: 0002, 0009, 0021, 0024, 0053, 0069.
"""
