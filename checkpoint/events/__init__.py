"""What happens, followed by whoever listens: sources, streams, the one follower of a process."""
