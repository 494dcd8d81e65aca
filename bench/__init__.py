"""Compares the speed of headrace with that of other loaders. Start with README.md, then run.py."""
