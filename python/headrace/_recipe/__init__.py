"""The interface between Python and C++: native steps, images, their arithmetic, random draws, image processors.

Decision: 0016.
"""
