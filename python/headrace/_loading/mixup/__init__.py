"""MixUp and CutMix of finished batches, in place, where a program does nothing else."""
