"""A search with KerasTuner: its space, its trials, and who runs them."""
