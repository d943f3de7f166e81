"""The command line for those who run workers."""
