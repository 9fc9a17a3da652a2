# Sourced by the other scripts: makes .venv with an interpreter that pypto supports, and installs the checkout into it.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

find_python() {
    local candidate
    for candidate in python3 python3.13 python3.12 python3.11 python3.10; do
        if "$candidate" -c 'import sys, venv; sys.exit(not (3, 10) <= sys.version_info[:2] <= (3, 13))' 2>/dev/null; then
            command -v "$candidate"
            return
        fi
    done
    echo "pypto needs Python 3.10 to 3.13 with the venv module; none was found on PATH." >&2
    exit 1
}

# install [EXTRAS]: (re)install only when the environment or pyproject.toml changed.
install() {
    local extras=${1:-} stamp
    [ -x .venv/bin/python ] || "$(find_python)" -m venv .venv
    if ! command -v "${PYPTO_CXX:-c++}" >/dev/null && ! command -v g++ clang++ >/dev/null; then
        extras="${extras:+$extras,}zig" # no C++ compiler here: take the one that pip can install
    fi
    stamp=".venv/.installed-$extras-$(cksum <pyproject.toml | tr ' ' -)"
    if [ ! -e "$stamp" ]; then
        .venv/bin/python -m pip install --quiet --disable-pip-version-check -e ".${extras:+[$extras]}"
        touch "$stamp"
    fi
}
