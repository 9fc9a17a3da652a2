"""The code on the documentation pages runs as it stands there."""

from __future__ import annotations

import re
import runpy
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


def code_blocks(page: str) -> str:
    return "\n\n".join(
        re.findall(r"^```python\n(.*?)^```", (ROOT / page).read_text(), re.MULTILINE | re.DOTALL)
    )


@pytest.mark.parametrize("page", ["README.md", "docs/guide.md"])
def test_code_of_the_page_runs(page, tmp_path, monkeypatch):
    script = tmp_path / "page.py"
    script.write_text(code_blocks(page))
    monkeypatch.setenv("PYPTO_PROG_BUILD_DIR", str(tmp_path / "build"))
    runpy.run_path(str(script))


@pytest.mark.parametrize(
    "page", sorted(str(p.relative_to(ROOT)) for p in [*ROOT.glob("*.md"), *ROOT.glob("docs/*.md")])
)
def test_links_of_the_page_lead_somewhere(page):
    folder = (ROOT / page).parent
    for target in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", (ROOT / page).read_text()):
        assert (folder / target).exists(), target
