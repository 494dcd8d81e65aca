"""One epoch as a trace: the load of threads and of a GPU, and a picture of it."""
