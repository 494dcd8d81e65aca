"""The verdict on an epoch: its bottleneck, how sure that is, and the change that would help most.

Decision: 0039.
"""
