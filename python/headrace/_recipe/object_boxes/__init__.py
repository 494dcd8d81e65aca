"""Bounding boxes of objects that follow the geometry of their image, as torchvision v2 moves them.

Decision: 0097.
"""
