"""Functions of other libraries through which programs get images, other than Pillow's: their pixels made natively."""
