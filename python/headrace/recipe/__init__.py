"""What is done to each sample: steps, their calls of Python, and the recipe of both."""
