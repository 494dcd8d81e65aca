"""Datasets that locate their samples' bytes or rows."""
