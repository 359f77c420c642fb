# SPDX-License-Identifier: Apache-2.0
"""pip.py PIP... -- install ARG... - installs with uv what pip would have installed, or lets pip do it.

uv knows neither pip's settings nor packages outside of the directory it installs to (Debian's own, those of a
user). uv gets both: settings as options, packages as empty entries beside what it installs, which are gone again
afterwards. An entry that uv replaces by a newer package is what pip does, too: the new one precedes the old one.

Whatever is not known here for certain is left to pip: an option, a setting, a failure of uv's. Nothing is lost by that
but time.
"""

from __future__ import annotations

import configparser
import importlib.metadata
import os
import re
import shutil
import subprocess
import sys
import sysconfig

# Options and what uv calls them. None: means nothing to uv, or nothing here (the cache is no part of a template).
VALUES: dict[str, str | None] = {
    "-r": "-r",
    "--requirement": "-r",
    "-c": "-c",
    "--constraint": "-c",
    "-e": "-e",
    "--editable": "-e",
    "-i": "--index-url",
    "--index-url": "--index-url",
    "--extra-index-url": "--extra-index-url",
    "-f": "--find-links",
    "--find-links": "--find-links",
    "--trusted-host": "--allow-insecure-host",
    "--cert": "--cert",
    "--timeout": "timeout",
    "--default-timeout": "timeout",
    "--cache-dir": None,
    "--progress-bar": None,
    "--retries": None,
    "--root-user-action": None,
}
FLAGS: dict[str, str | None] = {
    "--break-system-packages": "--break-system-packages",
    "--force-reinstall": "--reinstall",
    "--no-build-isolation": "--no-build-isolation",
    "--no-deps": "--no-deps",
    "--no-index": "--no-index",
    "--pre": "--prerelease=allow",
    "--quiet": "--quiet",
    "-q": "--quiet",
    "--require-hashes": "--require-hashes",
    "--no-compile": "no-compile",
    "--disable-pip-version-check": None,
    "--no-cache-dir": None,
    "--no-color": None,
    "--no-input": None,
    "--no-warn-conflicts": None,
    "--no-warn-script-location": None,
}
MARK = "cloche-stub"  # INSTALLER of the stub entries


class LeaveToPip(Exception):
    """Something that only pip knows how to do."""


class Request:
    """What is to be installed, in uv's words."""

    def __init__(self) -> None:
        self.options: list[str] = []
        self.things: list[str] = []
        self.timeout = ""
        self.compile = True

    def add(self, name: str | None, *value: str) -> None:
        if name == "timeout":
            self.timeout = value[0]
        elif name == "no-compile":
            self.compile = False
        elif name is not None:
            self.options += [name, *value]

    def flag(self, option: str) -> None:
        if option not in FLAGS:
            raise LeaveToPip(option)
        self.add(FLAGS[option])

    def value(self, option: str, value: str) -> None:
        if option not in VALUES:
            raise LeaveToPip(option)
        self.add(VALUES[option], value)
        self.things += [value] if option in ("-r", "--requirement", "-e", "--editable") else []


def read_words(request: Request, words: list[str]) -> None:
    rest = iter(words)
    plain = []
    for word in rest:
        name, equals, value = word.partition("=")
        if not word.startswith("-"):
            plain.append(word)
        elif word.startswith("--") and equals and name in VALUES:
            request.value(name, value)
        elif word in VALUES:
            request.value(word, next(rest, ""))
        else:
            request.flag(word)
    request.things += plain
    request.options += plain
    if not request.things:
        raise LeaveToPip("nothing to install")


def setting_files() -> list[str]:
    """pip's own, the later ones win."""
    home, only = os.path.expanduser("~"), os.environ.get("PIP_CONFIG_FILE")
    if only == os.devnull:
        return []
    places = [f"{top}/pip/pip.conf" for top in os.environ.get("XDG_CONFIG_DIRS", "/etc/xdg").split(":")]
    places += ["/etc/pip.conf", f"{home}/.pip/pip.conf"]
    places += [os.environ.get("XDG_CONFIG_HOME", f"{home}/.config") + "/pip/pip.conf", f"{sys.prefix}/pip.conf"]
    return places + ([only] if only else [])


def settings() -> dict[str, str]:
    found: dict[str, str] = {}
    for section in ("global", "install"):
        for path in setting_files():
            parser = configparser.RawConfigParser()
            parser.read(path, "utf-8")
            if parser.has_section(section):
                found.update((key.replace("_", "-"), value) for key, value in parser.items(section))
    for name, value in os.environ.items():
        if name.startswith("PIP_") and name != "PIP_CONFIG_FILE" and value:
            found[name[4:].lower().replace("_", "-")] = value
    return found


def read_settings(request: Request) -> None:
    for key, value in settings().items():
        option = f"--{key}"
        if option in FLAGS:
            if value.lower() in ("1", "true", "yes", "on"):
                request.flag(option)
            elif value.lower() not in ("0", "false", "no", "off"):
                raise LeaveToPip(option)
        else:
            for one in value.split():
                request.value(option, one)


def must_be_writable(path: str) -> None:
    """pip installs for the user alone where it may not write; uv fails."""
    while not os.path.exists(path):
        path = os.path.dirname(path)
    if not os.access(path, os.W_OK):
        raise LeaveToPip(f"{path} is not to be written to")


def normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def add_stubs(site: str) -> list[str]:
    """Entries for packages that Python finds elsewhere; their paths."""
    own = {os.path.realpath(sysconfig.get_path(kind)) for kind in ("purelib", "platlib")}
    there = {normal(d.metadata["Name"]) for d in importlib.metadata.distributions(path=list(own)) if d.metadata["Name"]}
    stubs = []
    for path in sys.path[1:]:
        if os.path.realpath(path) in own or not os.path.isdir(path):
            continue
        for found in importlib.metadata.distributions(path=[path]):
            name, version = found.metadata["Name"], found.version
            if not name or not version or normal(name) in there:
                continue
            there.add(normal(name))
            stubs.append(add_stub(site, name, version, found))
    return stubs


def add_stub(site: str, name: str, version: str, found: importlib.metadata.Distribution) -> str:
    entry = re.sub(r"[-_.]+", "_", name) + f"-{version}.dist-info"
    path = os.path.join(site, entry)
    os.mkdir(path)
    lines = ["Metadata-Version: 2.1", f"Name: {name}", f"Version: {version}"]
    lines += [f"Requires-Dist: {need}" for need in found.requires or []]
    lines += [f"Provides-Extra: {extra}" for extra in found.metadata.get_all("Provides-Extra") or []]
    files = {"METADATA": "\n".join(lines) + "\n", "INSTALLER": MARK + "\n"}
    points = found.read_text("entry_points.txt")  # programs that build a package look for them
    if points:
        files["entry_points.txt"] = points
    files["RECORD"] = "".join(f"{entry}/{file},,\n" for file in [*files, "RECORD"])
    for file, text in files.items():
        with open(os.path.join(path, file), "w", encoding="utf-8") as out:
            out.write(text)
    return path


def remove_stubs(stubs: list[str]) -> None:
    """Those that uv has replaced are gone, or another package's by now."""
    for path in stubs:
        try:
            with open(os.path.join(path, "INSTALLER"), encoding="utf-8") as file:
                mine = file.read().strip() == MARK
        except OSError:
            continue
        if mine:
            shutil.rmtree(path)


def install(request: Request) -> int:
    uv, site = shutil.which("uv"), sysconfig.get_path("purelib")
    if not uv:
        raise LeaveToPip("no uv")
    must_be_writable(site)
    must_be_writable(sysconfig.get_path("scripts"))
    command = [uv, "pip", "install", "--python", sys.executable, "--no-config", "--no-progress", "--link-mode=copy"]
    command.append("--index-strategy=unsafe-best-match")
    command += [*(["--compile-bytecode"] if request.compile else []), *request.options]
    environment = dict(os.environ, UV_PYTHON_DOWNLOADS="never")
    if request.timeout:
        environment["UV_HTTP_TIMEOUT"] = request.timeout
    os.makedirs(site, exist_ok=True)
    stubs = add_stubs(site)
    try:
        return subprocess.run(command, env=environment, stderr=subprocess.STDOUT, check=False).returncode
    finally:
        remove_stubs(stubs)


def main(pip: list[str], words: list[str]) -> None:
    request = Request()
    try:
        read_settings(request)
        read_words(request, words[1:])
        if install(request) == 0:
            return
        print("uv could not do that; pip tries:", flush=True)
    except (LeaveToPip, OSError, ValueError, KeyError, configparser.Error):
        pass
    os.execv(pip[0], [*pip, *words])


if __name__ == "__main__":
    split = sys.argv.index("--")
    main(sys.argv[1:split], sys.argv[split + 1 :])
