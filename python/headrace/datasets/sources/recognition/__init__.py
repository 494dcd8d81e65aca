"""Datasets of torch and torchvision, and datasets with a ``headrace_source`` method, as sources.

Decisions: 0007, 0076, 0081.
"""
