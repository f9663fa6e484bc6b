"""How each type is laid out in the store."""
