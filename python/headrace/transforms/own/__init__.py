"""Transforms that torchvision does not have."""
