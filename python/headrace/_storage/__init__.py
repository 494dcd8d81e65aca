"""Where bytes come from and are kept: other machines, caches of local files, entry points of JPEGs.

Decisions: 0036, 0058, 0075.
"""
