"""Lowers the transforms that return several images."""
