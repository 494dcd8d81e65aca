"""Numbers of threads and of batches ahead, found while a loader works.

Decision: 0045.
"""
