"""Lowers the transforms of libraries other than torchvision.

Decisions: 0024, 0027, 0029, 0033.
"""
