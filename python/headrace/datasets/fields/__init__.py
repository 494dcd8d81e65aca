"""Datasets of several fields: `Fields`, torch's StackDataset, and a geometry that their images share.

Decision: 0020.
"""
