"""Small files: written atomically, locked, read with checks, and names made harmless in them."""
