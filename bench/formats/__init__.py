"""Files of other kinds than baseline JPEGs."""
