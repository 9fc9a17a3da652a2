"""Deduplication of kernels: what it means that two definitions are equal, and why sharing one is safe.

What is done. A program with many equal layers is outlined to many equal kernels. Each would be
generated, compiled and loaded anew. This package finds definitions that are equal and lets one stand
for all of them. It touches definitions only: every call, every task, every argument and dependency
stays where it was, so what runs, how often and in which order is the same before and after.

    reference_index  ->  units  ->  projection  ->  call_shape_proof  ->  rewrite  ->  explain

- `reference_index`: one walk over the whole program finds every place that names a function. If it
  meets something it does not understand, a name might hide there, and nothing at all is done.
- `units`: what may be merged. An ordinary kernel is an InCore function that is referenced and closed; a
  bundle is a Group with the kernels it calls, which nobody else may name. Everything else keeps its
  identity, with a reason.
- `projection`: the normal form of a unit, over the numbers of `numbering`. Equal forms, equal units;
  `sharing` looks each unit up among those that stay.
- `call_shape_proof`: kernels whose forms are equal but whose dynamic extents are different symbols need
  a proof per call.
- `rewrite`: redirects the calls, removes the aliases, checks that no name is left dangling.
- `explain`: a record per unit that says what happened and why.

What equality is. Two functions are equal if a one-to-one renaming of what they bind makes them the
same: parameters, symbols of the signature, local definitions. Names, source places and comments do not
count. Everything else does: kinds, levels, attributes, directions, order, types with layouts and views,
element types, constants to the last bit. The normal form makes this a comparison of integers. A bound
variable is its position, in the order parameters, symbols, definitions; an expression or type is a
number that stands for its class, its values and the numbers of its parts. The table of these numbers
keeps the full key of each, so that two structures share a number only if they are the same; a hash is
used to find a candidate and never to decide.

Why a merge is safe. The code of a kernel depends on nothing but its definition: closed means that every
variable in it is a parameter, a symbol of its signature or defined before its use, that it owns no
storage, handle or communication resource, and that its body is there to be read. So equal definitions
compute equal results from equal arguments, and a call may go to either. Two things could still tell
them apart, and both are handled:

1. *Somebody might mean a particular definition.* A function that nothing references may be an entry for
   a caller outside the program; it stays. A member of a bundle is known by name inside the bundle; it
   is merged only with its whole bundle, position by position.
2. *A signature is read at calls.* Extents of results are stated in terms of the callee's symbols, and of
   scalar parameters that are extents, which are variables of each definition's own. If both definitions
   use the very same symbols, nothing changes. If not, the proof shows for each call that the arguments
   bind the new symbols to exactly the extents that the call states now. A call that leaves out an output
   proves nothing, since the runtime would read the callee's signature for it. One call without proof
   keeps the alias for all.

What is not done. No algebra over extents, no check at run time, no promise to find every duplicate:
comparisons, proofs and steps have budgets, so that the work stays proportional to the size of the
program, also for inputs made to defeat it. Depth costs no recursion, a shared subexpression is looked
at once.
"""

from __future__ import annotations
