"""Folders that may only be read, also for tests that root runs."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

_NOBODY = 65534


@contextmanager
def read_only(root: Path) -> Iterator[None]:
    """Nothing below `root` can be written during the block; root becomes a user to whom that applies.

    For that user `root` has to be in a folder that everybody may enter, which `tmp_path` is not.
    """
    folders = [root, *(path for path in root.rglob("*") if path.is_dir())]
    user = os.geteuid()
    for folder in folders:
        folder.chmod(0o555)
    try:
        if user == 0:
            os.seteuid(_NOBODY)
        yield
    finally:
        os.seteuid(user)
        for folder in folders:
            folder.chmod(0o755)
