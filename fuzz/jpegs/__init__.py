"""JPEG files changed in their structure: markers, tables, scans. headrace must judge and decode them as Pillow does."""
