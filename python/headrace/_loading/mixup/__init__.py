"""MixUp and CutMix of finished batches, in place, where a program does nothing else.

Decisions: 0022, 0025, 0049, 0061.
"""
