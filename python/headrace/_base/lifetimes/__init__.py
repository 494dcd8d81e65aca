"""How long objects live: lists of those that exist, what is done when one is dropped, and threads in Python.

Decision: 0050.
"""
