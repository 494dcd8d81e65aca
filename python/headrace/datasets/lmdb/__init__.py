"""LMDB databases of images as datasets."""
