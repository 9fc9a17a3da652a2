"""The `pypto` command and what it prints."""
