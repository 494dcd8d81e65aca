"""Tensors of images whose values are made natively, in one pass, when something reads them."""
