"""Doors for videos: torchcodec's VideoDecoder and decord's VideoReader."""
