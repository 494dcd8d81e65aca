"""Threads in Python that run the jobs of a native pipeline: Pillow's decoding, and the steps without a native twin.

Decisions: 0003, 0008.
"""
