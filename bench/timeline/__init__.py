"""One epoch in a trace: how busy threads and a GPU were, and a picture of it."""
