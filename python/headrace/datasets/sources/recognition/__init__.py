"""Datasets of torch and torchvision, and datasets with a ``headrace_source`` method, as sources."""
