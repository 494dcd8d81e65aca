"""Lowers the transforms of libraries other than torchvision."""
