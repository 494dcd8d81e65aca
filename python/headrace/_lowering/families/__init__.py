"""Lowers one family of transforms each: class names to functions that append steps to a recipe."""
