"""Public import path of `pypto.passes.manager`; both names are the same module."""

import sys

from pypto.passes import manager

sys.modules[__name__] = manager
