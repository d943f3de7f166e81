"""The pages on which people decide. A leaf: nothing but the addresses imports it."""
