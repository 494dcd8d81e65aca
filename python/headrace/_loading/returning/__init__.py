"""Loaders that torch delivers for, given back to native threads when the reason has gone.

Decisions: 0007, 0081.
"""
