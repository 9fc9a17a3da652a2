"""The C++ compiler of this machine: where it is, what it is, and how it is called.

Order of discovery: `PYPTO_CXX`, then `c++`, `g++` and `clang++` on PATH, then the `ziglang` package. What a
compiler is (`CompilerIdentity`) goes into the key of everything it makes; asking it costs two processes, so
callers keep the answer (`runtime.store` does, by path and time of change). No binary is cached here.
"""

from __future__ import annotations

import enum
import functools
import hashlib
import importlib.util
import os
import platform
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass, replace
from pathlib import Path

_NAMES_ON_PATH = ("c++", "g++", "clang++")
_LONG_ORCHESTRATION = 8192  # bytes of source; about twenty tasks
# What the kernel calls instruction sets of x86 that compilers use for arithmetic.
_X86_COMPUTES = re.compile(
    r"s?sse|pni$|avx|fma|f16c$|bmi[12]$|abm$|popcnt$|movbe$|xop$|tbm$|3dnow|gfni$|vaes$|aes$|vpclmul|pclmul|amx|adx$"
)
_PROBE_SOURCE = 'extern "C" int pypto_probe(int x) { return x + 1; }\n'


class ToolchainError(RuntimeError):
    """No usable C++ compiler, or one that cannot make a shared library."""


class CodeKind(enum.Enum):
    """What is compiled; each kind has its own flags."""

    KERNEL = "kernel"
    EXTERNAL_KERNEL = "external"
    ORCHESTRATION = "orchestration"
    RUNTIME = "runtime"


@dataclass(frozen=True, slots=True)
class CompilerIdentity:
    """What decides the code that a compiler makes."""

    command: tuple[str, ...]
    version: str  # the text it prints for --version
    target: str  # target triple
    tuning: tuple[str, ...]  # flags that select this machine's CPU, as far as the compiler knows them

    @property
    def is_zig(self) -> bool:
        return any("zig" in Path(word).name for word in self.command)

    def describe(self) -> str:
        """One line for people: the command and the first line of its version."""
        first = self.version.splitlines()[0] if self.version else "unknown version"
        return f"{' '.join(self.command)} ({first})"


def find_compiler() -> tuple[str, ...]:
    """The command of the C++ compiler to use. Raises `ToolchainError` when this machine has none."""
    chosen = os.environ.get("PYPTO_CXX", "").strip()
    if chosen:
        words = shlex.split(chosen)
        program = shutil.which(words[0])
        if program is None:
            raise ToolchainError(f"PYPTO_CXX names '{words[0]}', which is no program on PATH")
        return (program, *words[1:])
    for name in _NAMES_ON_PATH:
        program = shutil.which(name)
        if program is not None:
            return (program,)
    if importlib.util.find_spec("ziglang") is not None:
        return (sys.executable, "-m", "ziglang", "c++")
    raise ToolchainError(
        "no C++ compiler found: PYPTO_CXX is not set, none of c++, g++, clang++ is on PATH, and the ziglang "
        "package is not installed. Install a compiler, or get one from PyPI with: pip install ziglang "
        "(the dependency that the extra 'pypto[zig]' of a checkout adds). What is compiled already is found "
        "only by the compiler that made it; a program that runs without one is a bundle (pypto bundle)"
    )


def identify(command: tuple[str, ...]) -> CompilerIdentity:
    """Ask the compiler what it is and which tuning flags it accepts. Starts the compiler a few times."""
    version = _output_of([*command, "--version"])
    target = _output_of([*command, "-dumpmachine"]).strip()
    candidates = (("-march=native",), ("-mcpu=native",), ())
    for tuning in candidates:
        complaint = _probe(command, tuning)
        if complaint is None:
            return CompilerIdentity(command, version, target, tuning)
    raise ToolchainError(f"{' '.join(command)} cannot make a shared library:\n{complaint}")


def untuned(compiler: CompilerIdentity) -> CompilerIdentity:
    """The compiler, making code for all CPUs of its target. Zig takes this one unless told otherwise."""
    return replace(compiler, tuning=("-mcpu=baseline",) if compiler.is_zig else ())


@functools.cache
def target_cpu() -> str:
    """A text that changes when code tuned for this machine's CPU may not run on another one."""
    features = ""
    info = Path("/proc/cpuinfo")
    if info.exists():
        wanted = ("model name", "flags", "Features", "CPU part")
        first = info.read_text(errors="replace").split("\n\n", 1)[0]
        features = "\n".join(line for line in first.splitlines() if line.startswith(wanted))
    digest = hashlib.sha256(features.encode()).hexdigest()[:16]
    return f"{platform.system().lower()}-{platform.machine()}-{digest}"


@functools.cache
def target_system() -> str:
    """CPU family, system and C library of this machine, as `x86_64-linux-gnu`."""
    system = platform.system().lower()
    words = [platform.machine(), system]
    if system == "linux":
        words.append("gnu" if platform.libc_ver()[0] == "glibc" else "musl")
    return "-".join(words)


@functools.cache
def cpu_features() -> frozenset[str]:
    """The instruction sets of this machine that code tuned for it may use."""
    info = Path("/proc/cpuinfo")
    if not info.exists():
        return frozenset({target_cpu()})
    found = re.search(r"^(flags|Features)\s*:(.*)$", info.read_text(errors="replace"), re.MULTILINE)
    if found is None:
        return frozenset({target_cpu()})
    return frozenset(f for f in found[2].split() if found[1] == "Features" or _X86_COMPUTES.match(f))


def kernel_include_dir() -> Path:
    """Where the headers of the CPU kernel library are."""
    return Path(__file__).parent / "cpu" / "include"


def flags_for(kind: CodeKind, compiler: CompilerIdentity, source_bytes: int) -> tuple[str, ...]:
    """The flags for one translation unit, apart from paths; part of its key.

    An orchestration of many tasks is straight-line code that runs once: from some size on, optimising it
    costs more than it gives.
    """
    common: tuple[str, ...] = ("-std=c++17", "-g0", "-fPIC", "-shared")
    if compiler.is_zig:
        common += ("-fno-sanitize=undefined",)
    if kind is CodeKind.EXTERNAL_KERNEL:
        # Its author need not know about visibility; what else it defines is its own all the same.
        own = ("-Wl,-Bsymbolic",) if "linux" in compiler.target else ()
        return (*common, "-O3", *compiler.tuning, *own)
    common += ("-fvisibility=hidden",)
    if kind is CodeKind.KERNEL:
        # Results may not depend on traps or errno; nothing else is relaxed, NaN and signed zero count.
        strict = ("-fno-exceptions", "-fno-rtti", "-fno-math-errno", "-fno-trapping-math", "-w")
        # Tiles of different element types take turns in one buffer: types say nothing about aliasing.
        return (*common, "-O3", *compiler.tuning, *strict, "-fno-strict-aliasing")
    if kind is CodeKind.ORCHESTRATION:
        return (*common, "-O1" if source_bytes < _LONG_ORCHESTRATION else "-O0", "-fno-exceptions")
    return (*common, "-O2", "-pthread")


def command_line(
    compiler: CompilerIdentity,
    flags: tuple[str, ...],
    source: Path,
    output: Path,
    include_dirs: tuple[Path, ...],
) -> list[str]:
    """The words that compile `source` into the shared library `output`."""
    includes = [word for directory in include_dirs for word in ("-I", str(directory))]
    return [*compiler.command, *flags, *includes, str(source), "-o", str(output), "-lm"]


def _output_of(words: list[str]) -> str:
    try:
        done = subprocess.run(
            words, capture_output=True, text=True, errors="replace", timeout=120, check=False
        )
    except OSError as error:
        raise ToolchainError(f"cannot start {words[0]}: {error}") from error
    if done.returncode != 0:
        raise ToolchainError(f"'{' '.join(words)}' failed: {(done.stderr or done.stdout).strip()}")
    return done.stdout


def _probe(command: tuple[str, ...], tuning: tuple[str, ...]) -> str | None:
    """None when the compiler makes a library with these flags, else what it says."""
    with tempfile.TemporaryDirectory(prefix="pypto-probe-") as folder:
        source = Path(folder) / "probe.cpp"
        source.write_text(_PROBE_SOURCE)
        output = Path(folder) / "probe.so"
        words = [*command, "-std=c++17", "-fPIC", "-shared", *tuning, str(source), "-o", str(output), "-lm"]
        done = subprocess.run(
            words, capture_output=True, text=True, errors="replace", timeout=300, check=False
        )
        if done.returncode == 0 and output.exists():
            return None
        return done.stderr.strip() or f"exit status {done.returncode}"
