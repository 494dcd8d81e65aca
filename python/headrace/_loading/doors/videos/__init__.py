"""Doors for videos: torchcodec's VideoDecoder."""
