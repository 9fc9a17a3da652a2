"""Structural comparison of programs, and the hash that goes with it.

Both run on the field lists of the node classes. Names never matter; a variable introduced by a definition
field matches its counterpart everywhere after, a free variable must be the same object unless auto-mapping
is on.
"""

from pypto.ir.structural.difference import assert_structural_equal
from pypto.ir.structural.equal import structural_equal
from pypto.ir.structural.hash import structural_hash

__all__ = ["assert_structural_equal", "structural_equal", "structural_hash"]
