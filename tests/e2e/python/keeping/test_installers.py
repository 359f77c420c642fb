# SPDX-License-Identifier: Apache-2.0
"""pip in the steps of a build goes through uv where the template has it, and gives what pip gives."""

from __future__ import annotations

import shlex
import zipfile
from pathlib import Path

import e2b
import pytest

from support.recipes import Workshop, fresh

pytestmark = pytest.mark.timeout(480)  # many installations in one build

# What is installed below /usr/local and the homes: names, and contents where they don't tell who installed it and when.
STOCK = """
import hashlib, os
for top in ("/usr/local", "/home/user/.local", "/root/.local"):
    for folder, _, files in sorted(os.walk(top)):
        for name in sorted(files):
            path = os.path.join(folder, name)
            told = name in ("INSTALLER", "RECORD", "direct_url.json") or "/bin/" in path or name.endswith(".pyc")
            if name not in ("uv_cache.json", "REQUESTED") and "/uv/" not in path:
                print("=", path, "" if told else hashlib.sha256(open(path, "rb").read()).hexdigest()[:12])
"""
# The template's own libraries, a gigabyte, would be copied and listed with every case. uv stays.
EMPTY = (
    "rm -rf /usr/local/lib/node_modules/yarn; cd /usr/local/lib/python3.13/dist-packages && "
    "find . -mindepth 1 -maxdepth 1 ! -name 'uv*' -exec rm -rf {} +"
)
# Installs, tells what is there, and puts everything back. A function, because `pip` is one, too.
CASE = """
one() {
  echo "case $2"; mkdir -p /tmp/kept; cp -a /usr/local/lib/python3.13/dist-packages /tmp/kept/
  ls /usr/local/bin > /tmp/kept/bin
  eval "$1 install $2" || echo "= failed"; python3 /opt/stock.py
  rm -rf /usr/local/lib/python3.13/dist-packages /usr/local/other ~/.local
  mv /tmp/kept/dist-packages /usr/local/lib/python3.13/
  for file in $(ls /usr/local/bin | grep -vxFf /tmp/kept/bin); do rm "/usr/local/bin/$file"; done
}
"""


def wheel(folder: Path, name: str, version: str, *needs: str, extras: tuple[str, ...] = ()) -> None:
    notes = f"{name}-{version}.dist-info"
    lines = ["Metadata-Version: 2.1", f"Name: {name}", f"Version: {version}"]
    lines += [f"Provides-Extra: {extra}" for extra in extras] + [f"Requires-Dist: {need}" for need in needs]
    members = {
        f"{name}/__init__.py": f"VERSION = {version!r}\ndef main(): print(VERSION)\n",
        f"{notes}/METADATA": "\n".join(lines) + "\n",
        f"{notes}/WHEEL": "Wheel-Version: 1.0\nGenerator: hand\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        f"{notes}/entry_points.txt": f"[console_scripts]\n{name}-say = {name}:main\n",
    }
    members[f"{notes}/RECORD"] = "".join(f"{path},,\n" for path in [*members, f"{notes}/RECORD"])
    with zipfile.ZipFile(folder / f"{name}-{version}-py3-none-any.whl", "w") as archive:
        for path, body in members.items():
            archive.writestr(path, body)


@pytest.fixture(scope="module")
def stocked(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A template with uv whose pip is set up to install from a directory."""
    folder = tmp_path_factory.mktemp("stock")
    (folder / "wheels").mkdir()
    for version in ("1.0", "2.0"):
        wheel(folder / "wheels", "parcel", version)
    wheel(folder / "wheels", "bundle", "1.0", "parcel<3", "numpy", "tack; extra == 'more'", extras=("more",))
    wheel(folder / "wheels", "tack", "1.0")
    wheel(folder / "wheels", "numpy", "99.0")
    wheel(folder / "wheels", "modern", "1.0", "numpy>=99")
    (folder / "stock.py").write_text(STOCK)
    (folder / "case.sh").write_text(CASE)
    (folder / "pip.conf").write_text("[global]\nno-index = true\n[install]\nfind-links =\n    /opt/wheels\n")
    name = fresh("stocked")
    e2b.Template.build(
        e2b.Template(file_context_path=folder)
        .from_template("code-interpreter-v1")
        .run_cmd(EMPTY, user="root")
        .copy(["stock.py", "case.sh"], "/opt/", user="root")
        .copy("wheels", "/opt/wheels", user="root")
        .copy("pip.conf", "/etc/xdg/pip/pip.conf", user="root"),
        name,
    )
    return name


def built(recipe: e2b.TemplateClass) -> tuple[str, list[str]]:
    name, lines = fresh("installed"), []
    e2b.Template.build(recipe, name, on_build_logs=lambda entry: lines.append(entry.message))
    return name, [line.split("]: ", 1)[-1] for line in lines if "]: " in line]


def cases(stocked: str, pip: str, wordings: list[str], user: str, before: str) -> dict[str, list[str]]:
    lines = [". /opt/case.sh", before, *(f"one '{pip}' {shlex.quote(words)}" for words in wordings)]
    _, said = built(e2b.Template().from_template(stocked).run_cmd("; ".join(lines), user=user))
    told: dict[str, list[str]] = {}
    for line in said:
        if line.startswith("case "):
            told[line[5:]] = []
        elif told:
            list(told.values())[-1].append(line)
    assert list(told) == wordings, said
    return told


def both_ways(stocked: str, wordings: list[str], user: str = "root", before: str = "true") -> dict[str, list[str]]:
    """What was said of each installation, when all left the same as pip itself."""
    ours, pips = (cases(stocked, pip, wordings, user, before) for pip in ("pip", "env -u PIP_PYTHON pip"))
    for words in wordings:
        left, right = ({line for line in told[words] if line.startswith("= ")} for told in (ours, pips))
        assert left == right, (words, sorted(left ^ right), ours[words])
        assert "= failed" not in left, ours[words]
    return ours


async def test_the_sdks_helper_goes_through_uv(stocked: str) -> None:
    workshop, name = Workshop("sync"), fresh("helped")
    recipe = workshop.template().from_template(stocked).pip_install(["parcel==1.0", "tack"])
    await workshop.build(recipe, name)
    workshop.says("Installed 2 packages", "+ parcel==1.0")
    with e2b.Sandbox.create(name, timeout=60) as box:
        place = "/usr/local/lib/python3.13/dist-packages"
        assert box.files.read(f"{place}/parcel-1.0.dist-info/INSTALLER").strip() == "uv"
        assert box.files.exists(f"{place}/parcel/__pycache__/__init__.cpython-313.pyc")
        assert box.commands.run("parcel-say").stdout == "1.0\n"
        assert "tack" in box.commands.run("pip list").stdout
        assert "pip" not in box.commands.run("declare -F").stdout  # boxes have the plain one


def test_the_outcome_is_pips(stocked: str) -> None:
    wordings = [
        "parcel",
        '"parcel<2" tack',
        "bundle",
        '"bundle[more]"',
        "modern",
        "--no-deps bundle",
        "--no-cache-dir parcel",
        "-r /tmp/needs -c /tmp/limits",
        "--force-reinstall parcel",
        "/opt/wheels/parcel-1.0-py3-none-any.whl",
    ]
    before = "echo bundle > /tmp/needs; echo 'parcel<2' > /tmp/limits"
    told = both_ways(stocked, wordings, before=before)
    for words, lines in told.items():
        assert any(line.startswith("Installed ") for line in lines), (words, lines)
        files = [line for line in lines if line.startswith("= ")]
        assert any("/numpy/" in line for line in files) == (words == "modern"), words  # Debian's is there and stays


OTHER_WAYS = [
    ("python3 -m pip", "root"),
    ("/usr/bin/pip", "root"),
    ("sudo pip", "user"),
    ("sudo -H python3 -m pip", "user"),
    ("sh -c 'exec pip \"$@\"' sh", "root"),
]


@pytest.mark.parametrize(("pip", "user"), OTHER_WAYS, ids=[way for way, _ in OTHER_WAYS])
def test_pip_by_other_ways(stocked: str, pip: str, user: str) -> None:
    """What is installed, by whom, and that what uv does otherwise is pip's here, too."""
    name, said = built(
        e2b.Template().from_template(stocked)
        .run_cmd(f"{pip} install parcel==1.0 tack && {pip} install --upgrade parcel && {pip} --version", user=user)
    )  # fmt: skip
    assert any(line.startswith("Installed 2 packages") for line in said), said
    assert any(line.startswith("Successfully installed parcel-2.0") for line in said), said
    assert any(line.startswith("pip ") and "python 3.13" in line for line in said), said
    with e2b.Sandbox.create(name, timeout=60) as box:
        place = "/usr/local/lib/python3.13/dist-packages"
        assert box.files.read(f"{place}/tack-1.0.dist-info/INSTALLER").strip() == "uv"
        assert box.commands.run("parcel-say").stdout == "2.0\n"
        assert box.commands.run("env").stdout.count("PIP_PYTHON") == 0
        assert box.commands.run(f"stat -c %u {place}/tack").stdout == "0\n"


def test_a_failure_by_another_way_is_told_once_by_pip(stocked: str) -> None:
    lines: list[str] = []
    with pytest.raises(e2b.BuildException, match="exit status 1"):
        e2b.Template.build(
            e2b.Template().from_template(stocked).run_cmd("python3 -m pip install no-such-thing", user="root"),
            fresh("fails"),
            on_build_logs=lambda entry: lines.append(entry.message),
        )
    assert sum("No matching distribution found for no-such-thing" in line for line in lines) == 1, lines


def test_sudo_is_otherwise_sudo(stocked: str) -> None:
    _, said = built(
        e2b.Template().from_template(stocked)
        .run_cmd((
        "sudo -u user id -un; sudo id -un; sudo -n sh -c 'echo $0 \"$@\"' a 'b c'; sudo -H "
        "pip --version; sudo false || echo refused"
), user="user")
    )  # fmt: skip
    assert said[:3] == ["user", "root", "a b c"], said
    assert said[3].startswith("pip "), said
    assert said[4] == "refused"


def test_pip_installs_an_editable_project(stocked: str) -> None:
    project = (
        "[build-system]\\nrequires = []\\nbuild-backend = "
        "'setuptools.build_meta'\\n[project]\\nname = 'mine'\\nversion = '1'\\n"
    )
    before = f'mkdir -p /srv/mine/mine; touch /srv/mine/mine/__init__.py; printf "{project}" > /srv/mine/pyproject.toml'
    name, said = built(
        e2b.Template()
        .from_template(stocked)
        .run_cmd(f"{before}; pip install --no-build-isolation -e /srv/mine", user="root")
    )
    assert any("mine==1 (from file" in line for line in said), said
    with e2b.Sandbox.create(name, timeout=60) as box:
        assert (
            box.commands.run("python3 -c 'import mine; print(mine.__file__)'").stdout == "/srv/mine/mine/__init__.py\n"
        )


def test_what_uv_does_otherwise_is_left_to_pip(stocked: str) -> None:
    wordings = ["--user parcel", "--upgrade parcel", "--target /usr/local/other parcel"]
    for lines in both_ways(stocked, wordings, user="user").values():
        assert any(line.startswith("Successfully installed") for line in lines), lines


def test_a_user_without_the_right_to_write_installs_at_home(stocked: str) -> None:
    commands = "sudo chmod -R go-w /usr/local && pip install parcel && python3 /opt/stock.py"
    _, said = built(e2b.Template().from_template(stocked).run_cmd(commands, user="user"))
    place = "= /home/user/.local/lib/python3.13/site-packages/parcel/"
    assert [line for line in said if line.startswith(place)], said
    assert any(line.startswith("Successfully installed") for line in said), said


def test_a_virtual_environment_is_the_one_in_use(stocked: str) -> None:
    for line in (
        ". /srv/v/bin/activate && pip",
        ". /srv/v/bin/activate && python -m pip",
        "/srv/v/bin/python -m pip",
        "/srv/v/bin/pip",
    ):
        in_environment(stocked, f"python3 -m venv /srv/v && {line} install bundle")


def in_environment(stocked: str, line: str) -> None:
    name, said = built(e2b.Template().from_template(stocked).run_cmd(line, user="root"))
    assert any(line.startswith("Installed 3 packages") for line in said), said  # nothing of Debian's is seen in there
    with e2b.Sandbox.create(name, timeout=60) as box:
        assert box.commands.run("ls /srv/v/lib/python3.13/site-packages").stdout.split()[0] == "bundle"
        assert not box.files.exists("/usr/local/lib/python3.13/dist-packages/bundle")


def test_a_failure_is_told_in_pips_words(stocked: str) -> None:
    lines: list[str] = []
    with pytest.raises(e2b.BuildException, match="pip install no-such-thing"):
        e2b.Template.build(
            e2b.Template().from_template(stocked).pip_install("no-such-thing"),
            fresh("fails"),
            on_build_logs=lambda entry: lines.append(entry.message),
        )
    assert any("No matching distribution found for no-such-thing" in line for line in lines), lines


def test_without_uv_pip_is_pip() -> None:
    name, said = built(
        e2b.Template()
        .from_template("base")
        .run_cmd(
            "! type -P uv; mkdir -p /tmp/p/p; touch /tmp/p/p/__init__.py; pip --version; pip3 install --no-index pip",
            user="root",
        )
    )
    assert name
    assert any(line.startswith("Requirement already satisfied: pip") for line in said), said
