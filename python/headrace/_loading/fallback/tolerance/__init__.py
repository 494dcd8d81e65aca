"""`on_error` where torch delivers: samples that fail are left out, replaced, counted and named.

Decisions: 0118, 0124.
"""
