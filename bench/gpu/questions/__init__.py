"""Questions about nvJPEG, asked through ctypes, independently of headrace's own code."""
