"""Representations of an image: its kind, its conversion to a tensor, the metadata of its file.

Decisions: 0008, 0032.
"""
