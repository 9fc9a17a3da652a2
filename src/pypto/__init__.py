"""Tile programs on an ordinary CPU."""
