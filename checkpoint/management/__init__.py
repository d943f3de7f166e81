"""The command line of the installation."""
