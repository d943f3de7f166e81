"""The pages on workflows, and signing in. A leaf: nothing but the addresses imports it."""
