"""Benchmarks: what a verified step costs, as a ratio to what PostgreSQL alone can do in the same run."""
