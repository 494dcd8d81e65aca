"""Weighted mixtures of datasets: what they consist of, and how many samples of each an epoch has.

Decisions: 0113.
"""
