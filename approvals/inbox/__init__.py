"""What people are asked, in one list: what comes first, narrowed, read in peace, kept under a name."""
