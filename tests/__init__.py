"""The tests. They speak the product's verbs and wait for conditions, never for durations."""
