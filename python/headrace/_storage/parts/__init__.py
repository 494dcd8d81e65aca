"""Bytes of samples of which only parts are read: of files, of memory, of objects in other machines."""
