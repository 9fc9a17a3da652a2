"""Outlining: scopes of a function become functions of their own.

What it is. A scope is a piece of a function that is to run somewhere else: on a core, on a cluster, at
another level of the machine. Outlining takes the piece out, makes it a closed function, and leaves a
dispatch in its place:

    find scopes  ->  compute captures  ->  build function  ->  replace scope

- *find scopes*: `outliner` walks a function top-down and meets each scope of one kind. Whether a value of
  the scope is needed later is looked up in an index of the function that is built once (`later_uses`).
- *compute captures*: what the scope reads from outside (`captures`), what leaves it (`outputs`), and how it
  uses each captured tensor (`directions`): its `boundary`, read off the scope's body as it stands.
- *build function*: captured variables become parameters, results are returned, and a result that is a
  parameter's storage is returned as the parameter itself (`callee`, with `pypto.ir.return_lineage`).
- *replace scope*: a `Call`, or a `Submit` if the scope has a task id or needs one, and the unpacking of its
  results (`dispatch`). What belongs to the launch (block count, dependencies, dumps) stays here
  (`launch_spec`).

Why it is safe. A function after outlining must compute what it computed before. Four facts carry this:

1. *Every value arrives.* In SSA form a variable has one value. The parameters are all variables that the
   body reads before it defines them, and the arguments are the same variables, so the body sees the values
   it saw in place.
2. *Every value that is needed leaves.* A value that the scope defines leaves if any statement after it
   mentions it, also in a type. Statements of the other branch, or earlier in a loop, are not after it; in
   SSA form they cannot name it.
3. *Every write leaves.* Tensors are storage: a store into a captured tensor happens whether or not the
   store's result is used. So each stored tensor is a result of the function, under a new name in the
   caller, and what follows uses the new name; the order of the writes is thereby in the data flow. A new
   name that is bound in a branch or a loop body ends there: after it, the storage goes by the name it had
   before, which denotes the same memory.
4. *Nothing of the caller leaks in.* The body is rewritten with parameters for captured variables, in types
   too. Launch expressions name the caller's variables and are therefore kept at the dispatch. Only the
   symbol of a dynamic extent that occurs in types alone stays shared: it stands for an extent of the
   arguments, not for a value.

Names of functions are part of the result: processing order and the rules in `names` fix them. Names of
variables are hints. The kinds of scope differ in a `ScopeRule` each, kept by the pass that outlines the
kind.
"""

from __future__ import annotations

from pypto.passes.outline.callee import Head
from pypto.passes.outline.errors import ScopeUsageError
from pypto.passes.outline.launch_spec import LaunchSpec, effective_launch_spec, is_launch_wrapper
from pypto.passes.outline.outliner import OutlinedFunction, ScopeRule, outline_scopes
from pypto.passes.outline.program import outline_program

__all__ = [
    "Head",
    "LaunchSpec",
    "OutlinedFunction",
    "ScopeRule",
    "ScopeUsageError",
    "effective_launch_spec",
    "is_launch_wrapper",
    "outline_program",
    "outline_scopes",
]
