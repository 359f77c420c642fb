# SPDX-License-Identifier: Apache-2.0
"""The gallery has every figure, its picture beside the data read from it."""

from __future__ import annotations

import html
import json
import re
import subprocess
import sys
from pathlib import Path

import pytest
from cases import CASES

MAKE = Path(__file__).resolve().parents[1] / "gallery" / "make"
DOCS = MAKE.parents[3] / "docs"
library_cases = pytest.importorskip("library_cases")


@pytest.fixture(scope="module")
def gallery(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("gallery")
    subprocess.run([sys.executable, str(MAKE), str(out)], check=True, capture_output=True, timeout=600)
    return out


def sections(gallery: Path) -> dict[str, str]:
    page = (gallery / "index.html").read_text()
    return {part[1]: part[0] for part in re.findall(r"(<section><h2>(\w+): .*?</section>)", page, re.S)}


def test_every_case_has_a_section(gallery: Path) -> None:
    assert list(sections(gallery)) == [case.name for case in [*CASES, *library_cases.LIBRARY_CASES]]


def test_every_section_has_its_picture_and_its_data(gallery: Path) -> None:
    for name, section in sections(gallery).items():
        picture = re.search(r'(?:<img|<iframe) src="([^"]+)"', section)
        assert picture, name
        made = (gallery / picture[1]).read_bytes()
        assert made.startswith(b"\x89PNG") or b"Plotly.newPlot" in made, name
        data = html.unescape(re.search(r"<pre>(.*)</pre>", section, re.S)[1])  # type: ignore[index]
        assert data.startswith('{"type": ') and (data.endswith(" ...") or json.loads(data)), name


@pytest.mark.parametrize("case", library_cases.LIBRARY_CASES, ids=lambda case: case.name)
def test_a_figure_of_a_library_is_told_as_its_kind(gallery: Path, case: library_cases.LibraryCase) -> None:
    assert f"unknown, beside it {case.kind}" in sections(gallery)[case.name]


def test_the_pictures_of_the_documentation_are_there() -> None:
    named = re.findall(r"\((images/charts/\w+\.png)\)", (DOCS / "charts.md").read_text())
    assert named and all((DOCS / name).read_bytes().startswith(b"\x89PNG") for name in named)
