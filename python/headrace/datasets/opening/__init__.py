"""Datasets from the words of a command line."""
