"""Clips of audio: the engine over native threads, and the Python threads for what these do not read.

Decision: 0102.
"""
