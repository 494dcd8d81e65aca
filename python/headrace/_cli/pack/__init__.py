"""Writes sources as tar shards or arrays, checks what was written, and joins the work of several machines.

Decisions: 0034, 0035.
"""
