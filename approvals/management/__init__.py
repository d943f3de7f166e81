"""The command line for those who decide."""
