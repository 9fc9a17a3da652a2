"""The parts of ConvertToSSA: liveness of the input and the versions made so far."""
