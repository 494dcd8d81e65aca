"""What a loader says of itself: checks, explanations, pages, metrics, a terminal."""
