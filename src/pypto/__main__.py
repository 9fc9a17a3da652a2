"""`python -m pypto` is the `pypto` command."""

from __future__ import annotations

from pypto.tools.cli import main

if __name__ == "__main__":
    main()
