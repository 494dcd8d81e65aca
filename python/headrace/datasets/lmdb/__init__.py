"""LMDB databases of images as datasets.

Decision: 0037.
"""
