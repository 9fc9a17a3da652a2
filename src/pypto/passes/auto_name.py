"""Names that passes make: `<base>__[<qualifier>_]<role>[_v<N>]`.

A name is a hint for people; identity is by Var object. The form is still fixed, because printed programs
and generated code show it, and because re-running a pass must find the user's base name again: a second SSA
conversion of `x__ssa_v3` starts from `x`.
"""

from __future__ import annotations

from dataclasses import dataclass

ROLES = frozenset({"ssa", "iter", "rv", "phi", "tile", "tmp", "out", "store", "idx"})

_DELIMITER = "__"


@dataclass(frozen=True, slots=True)
class ParsedName:
    """A name taken apart; `role` and `version` are None where the name has none."""

    base: str
    qualifier: str
    role: str | None
    version: int | None


def parse_name(name: str) -> ParsedName:
    """Take a name apart at its first `__`."""
    base, delimiter, rest = name.partition(_DELIMITER)
    if not delimiter:
        return ParsedName(name, "", None, None)
    tokens = rest.split("_")
    version = None
    if tokens and tokens[-1][:1] == "v" and tokens[-1][1:].isdecimal():
        version = int(tokens.pop()[1:])
    role = tokens.pop() if tokens and tokens[-1] in ROLES else None
    return ParsedName(base, "_".join(tokens), role, version)


def name_seed(name: str) -> tuple[str, str]:
    """Return the (base, qualifier) from which new versions of `name` are named."""
    parsed = parse_name(name)
    if parsed.role is None and parsed.version is None:
        return name, ""
    return parsed.base, parsed.qualifier


def base_of(name: str) -> str:
    """Return the user's part of a name: `x` for `x__ssa_v3`, the name itself if no pass made it."""
    return name_seed(name)[0]


def auto_name(base: str, role: str, version: int, qualifier: str = "") -> str:
    """Build a name; raises ValueError if `base` contains the reserved delimiter."""
    if _DELIMITER in base:
        raise ValueError(f"IR auto-name base cannot contain reserved delimiter '__': '{base}'")
    middle = f"{qualifier}_{role}" if qualifier else role
    return f"{base}{_DELIMITER}{middle}_v{version}"
