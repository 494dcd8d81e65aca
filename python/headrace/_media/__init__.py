"""Frames of videos from the files as they are; rooms: video."""
