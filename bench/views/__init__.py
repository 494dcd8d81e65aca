"""Several views of an image: torch's DataLoader against one decode for all views."""
