"""The analysis behind FuseCreateAssembleToSlice: facts about buffers, and which of them can be fused."""
