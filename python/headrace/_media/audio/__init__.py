"""Audio: which part of a file a sample is, its waveform by torchcodec or libsndfile, and FFmpeg's arithmetic.

Decision: 0102.
"""
