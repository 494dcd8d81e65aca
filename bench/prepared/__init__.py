"""Times a loader bare and through trainers."""
