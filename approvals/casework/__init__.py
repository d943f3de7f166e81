"""What people do about a case beside answering it."""
