"""Operators: their declarations, and builders that make calls of them."""
