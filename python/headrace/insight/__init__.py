"""What the loader says of itself: proof, words, numbers, time lines."""
