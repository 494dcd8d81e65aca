"""Tables of encoded images as sources: Hugging Face datasets, Arrow and Parquet files, shards.

Decisions: 0032, 0048.
"""
