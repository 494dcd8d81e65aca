"""Ways to objects: requests over HTTP, to S3, and through any file system of fsspec."""
