"""Analysis of integer expressions: folding, simplification, bounds, residues, proofs."""

from pypto.ir.arith.analyzer import Analyzer, ConstraintContext
from pypto.ir.arith.canonical_simplify import CanonicalSimplifier
from pypto.ir.arith.const_int_bound import ConstIntBound, ConstIntBoundAnalyzer
from pypto.ir.arith.fold import fold_const
from pypto.ir.arith.int_set import IntSet, IntSetAnalyzer
from pypto.ir.arith.integers import extended_euclidean, floordiv, floormod, gcd, lcm
from pypto.ir.arith.modular_set import ModularSet, ModularSetAnalyzer
from pypto.ir.arith.rewrite_simplify import RewriteSimplifier
from pypto.ir.arith.transitive_comparison import CompareResult, TransitiveComparisonAnalyzer

__all__ = [
    "Analyzer",
    "CanonicalSimplifier",
    "CompareResult",
    "ConstIntBound",
    "ConstIntBoundAnalyzer",
    "ConstraintContext",
    "IntSet",
    "IntSetAnalyzer",
    "ModularSet",
    "ModularSetAnalyzer",
    "RewriteSimplifier",
    "TransitiveComparisonAnalyzer",
    "extended_euclidean",
    "floordiv",
    "floormod",
    "fold_const",
    "gcd",
    "lcm",
]
