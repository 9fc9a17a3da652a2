"""One small change to statements: the change that makes two kernels nearly, but not, equal."""

from __future__ import annotations

import random
import re

_OPERATIONS = ("add", "sub", "maximum", "minimum")
_NUMBER = re.compile(r"(?<=, )(-?\d+\.\d+)(?=\))")
_OPERATION = re.compile(r"(?<=pl\.)(add|sub|maximum|minimum)(?=\()")


def mutated(lines: list[str], rng: random.Random) -> list[str]:
    """The lines with one constant or operation replaced; unchanged if there is none."""
    places = [
        (number, match)
        for number, line in enumerate(lines)
        for pattern in (_NUMBER, _OPERATION)
        for match in pattern.finditer(line)
    ]
    if not places:
        return lines
    number, match = rng.choice(places)
    old = match.group()
    if old in _OPERATIONS:
        new = rng.choice([each for each in _OPERATIONS if each != old])
    else:
        new = rng.choice([each for each in ("0.25", "1.5", "-2.0") if each != old])
    line = lines[number]
    return [*lines[:number], line[: match.start()] + new + line[match.end() :], *lines[number + 1 :]]
