# SPDX-License-Identifier: Apache-2.0
"""Builds of one team share what their package managers fetched; other teams see none of it."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import e2b
import pytest

from support.recipes import fresh

SERVER = """
import http.server, io, pathlib, zipfile
wheel = io.BytesIO()
with zipfile.ZipFile(wheel, "w") as z:
    z.writestr("parcel.py", "word = 'delivered'")
    for name, text in {
        "METADATA": "Metadata-Version: 2.1\\nName: parcel\\nVersion: 1.0\\n",
        "WHEEL": "Wheel-Version: 1.0\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n",
        "RECORD": "",
    }.items():
        z.writestr(f"parcel-1.0.dist-info/{name}", text)
class Index(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        name = "parcel-1.0-py3-none-any.whl"
        page = f"<a href='/{name}'>{name}</a>".encode()
        body, kind = (wheel.getvalue(), "zip") if name in self.path else (page, "html")
        self.send_response(200)
        self.send_header("Content-Type", {"zip": "application/zip", "html": "text/html"}[kind])
        self.send_header("Content-Length", str(len(body)))
        self.send_header("Cache-Control", "max-age=86400")
        self.end_headers()
        self.wfile.write(body)
http.server.HTTPServer(("127.0.0.1", 8900), Index).serve_forever()
"""
INSTALL = (
    "python3 /tmp/index.py & sleep 1; "
    "pip install --trusted-host 127.0.0.1 --index-url http://127.0.0.1:8900/simple parcel; "
    "status=$?; kill %1; exit $status"
)


def build(template: e2b.TemplateClass, **options: str) -> tuple[str, list[str]]:
    name = fresh("cached")
    lines: list[str] = []
    e2b.Template.build(
        template, name, on_build_logs=lambda entry: lines.append(entry.message), **options
    )
    return name, lines


def recipe(tmp_path: Path, *commands: str, user: str = "root") -> e2b.TemplateClass:
    (tmp_path / "index.py").write_text(SERVER)
    made = (
        e2b.Template(file_context_path=tmp_path)
        .from_template("base")
        .copy("index.py", "/tmp/index.py")
    )
    made = made.run_cmd(f"echo {fresh('unlike-others')}", user="root")
    for command in commands:
        made = made.run_cmd(command, user=user)
    return made


@pytest.mark.parametrize("user", ["root", "user"])
def test_a_wheel_is_fetched_once(tmp_path: Path, user: str) -> None:
    _, first = build(recipe(tmp_path, INSTALL, user=user))
    assert [line for line in first if "Downloading" in line and ".whl" in line], first
    name, second = build(recipe(tmp_path, INSTALL, user=user))
    assert [line for line in second if "Using cached" in line and ".whl" in line], second
    with e2b.Sandbox.create(name, timeout=60) as box:
        assert (
            box.commands.run("python3 -c 'import parcel; print(parcel.word)'").stdout
            == "delivered\n"
        )
        assert not box.files.exists("/dev/cloche")
        assert "PIP_CACHE_DIR" not in box.commands.run("env").stdout


def test_packages_of_apt_are_pooled(tmp_path: Path) -> None:
    deb = fresh("thing") + "_1_all.deb"
    where = "eval $(apt-config shell d Dir::Cache::Archives/d); "
    build(recipe(tmp_path, f"{where} echo fetched > $d/{deb}"))
    _, lines = build(recipe(tmp_path, f"{where} cat $d/{deb} && test -d $d/partial"))
    assert [line for line in lines if line.endswith("fetched")], lines


def test_another_team_sees_nothing(tmp_path: Path) -> None:
    mark = fresh("mark")
    build(recipe(tmp_path, f"touch /dev/cloche/{mark}"))
    _, own = build(recipe(tmp_path, f"ls /dev/cloche/{mark} && echo seen"))
    assert [line for line in own if line.endswith("seen")]
    cloche = os.environ["CLOCHE_BIN"]
    team = subprocess.run(
        [cloche, "team", "create", mark], capture_output=True, text=True, check=True
    )
    key = subprocess.run(
        [cloche, "key", "create", "--team", team.stdout.strip()],
        capture_output=True,
        text=True,
        check=True,
    )
    foreign = recipe(
        tmp_path, f"test -d /dev/cloche && ! test -e /dev/cloche/{mark} && echo nothing"
    )
    _, lines = build(foreign, api_key=key.stdout.strip())
    assert [line for line in lines if line.endswith("nothing")], lines
