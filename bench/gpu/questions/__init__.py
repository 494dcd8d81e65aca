"""Questions about nvJPEG, asked through ctypes: headrace's own code must not be its own witness."""
