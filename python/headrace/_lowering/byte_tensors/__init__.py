"""Lowers transforms of byte tensors that PIL images have another arithmetic for.

Decisions: 0053, 0066, 0069.
"""
