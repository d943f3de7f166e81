"""What the record says, in words for people and programs."""
