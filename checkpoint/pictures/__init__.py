"""What the console draws: plans, times and the installation, counted from the record."""
