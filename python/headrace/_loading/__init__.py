"""The loader's epochs: their order, native threads or torch's workers, collation, tuning.

Decisions: 0007, 0079.
"""
