"""Datasets of audio files.

Decision: 0102.
"""
