"""Measures headrace beside what people use today. Start with README.md, then run.py."""
