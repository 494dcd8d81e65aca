"""Decoded samples of a program's own dataset, kept once for all processes of a machine.

Decision: 0122.
"""
