"""Videos: where the packets of a stream are, which frames need which, and the frames themselves, decoded by PyAV."""
