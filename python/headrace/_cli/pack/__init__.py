"""Writes sources as tar shards or arrays, checks what was written, and joins the work of several machines."""
