"""The same module as `pypto.testing`."""

from __future__ import annotations

import importlib
import sys

sys.modules[__name__] = importlib.import_module("pypto.testing")
