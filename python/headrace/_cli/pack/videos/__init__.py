"""``headrace pack --video``: videos in other containers, or encoded with short groups of pictures (decision 0107)."""
