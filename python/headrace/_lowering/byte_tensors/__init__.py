"""Lowers transforms of byte tensors that PIL images have another arithmetic for."""
