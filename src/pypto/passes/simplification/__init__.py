"""The parts of Simplify: rewriting of expressions and types, and removal of what became unused."""
