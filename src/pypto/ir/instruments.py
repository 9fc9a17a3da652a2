"""Public import path of the instruments in `pypto.passes.instruments`."""

from pypto.passes.instruments import make_roundtrip_instrument

__all__ = ["make_roundtrip_instrument"]
