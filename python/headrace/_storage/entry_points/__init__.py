"""Where the rows of JPEGs begin: learned while they are decoded, within a limit, and kept in a sidecar.

Decisions: 0034, 0047, 0067, 0099.
"""
