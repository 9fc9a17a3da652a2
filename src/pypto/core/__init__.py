"""Foundations below the IR: element types, source spans, error classes and logging."""
