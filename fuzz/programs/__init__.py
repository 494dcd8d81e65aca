"""Random programs that use a DataLoader, run with torch's class and with headrace's: every observation is compared."""
