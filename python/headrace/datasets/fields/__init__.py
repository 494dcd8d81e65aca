"""Datasets of several fields: `Samples`, torch's StackDataset, and a geometry that their images share.

Decision: 0020.
"""
