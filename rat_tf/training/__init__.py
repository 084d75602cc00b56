"""A run: its folder, its loop, what it saves and what a user sees of it."""
