"""Loaders whose samples other processes make: headrace's helpers, Ray Data, tf.data service."""
