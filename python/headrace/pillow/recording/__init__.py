"""What is recorded of an image, as a plan of the kernels; counts of images; replaced functions of libraries."""
