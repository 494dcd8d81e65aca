"""What all rooms use: the native module, errors, cores, ranks, lifetimes, other libraries' own functions.

Decisions: 0050, 0059.
"""
