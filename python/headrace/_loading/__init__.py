"""The loader's epochs: their order, native threads or torch's workers, collation, tuning."""
