"""A dataset of clips of videos, and which frames a clip consists of."""
