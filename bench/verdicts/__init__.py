"""Verdicts of built situations: are they right, and do the expected gains come true?"""
