"""Image processors of Hugging Face's transformers as steps; transformers is recognised, never imported.

Decision: 0027.
"""
