"""Indexes of videos, encoded: in memory that the processes of a loader share, and in a folder for later runs.

Decision: 0109.
"""
