# SPDX-License-Identifier: Apache-2.0
"""Dockerfiles as steps of a template.

One stage. `$NAME` of earlier ENV and ARG lines stays in the steps, where the server replaces it; a form with a default
(`${NAME:-x}`) is resolved here. What has no meaning in a sandbox (EXPOSE, LABEL, ...) is left out.
"""

from __future__ import annotations

import json
import os
import re
from dataclasses import dataclass, field
from shlex import quote
from typing import TYPE_CHECKING, Any, Dict, List, NoReturn, Optional, Tuple, cast

from ...exceptions import DockerfileSyntaxError
from .ready import wait_for_timeout

if TYPE_CHECKING:
    from .base import TemplateBuilder

_DIRECTIVE = re.compile(r"#\s*(\w+)\s*=\s*(\S+)\s*\Z")
_HEREDOC = re.compile(r"<<(-?)(['\"]?)([A-Za-z0-9_.\-/]+)\2")
_BARE_HEREDOC = re.compile(r"<<-?(['\"]?)[A-Za-z0-9_.\-/]+\1\Z")
_FLAG = re.compile(r"--([a-z-]+)(?:=(\S*))?\s*")
_MODE = re.compile(r"[0-7]{3,4}\Z")
_VARIABLE = re.compile(r"\$(?:\{(\w+)(?:(:?[-+])([^}]*))?\}|(\w+))")
_IGNORED = frozenset(("EXPOSE", "VOLUME", "LABEL", "MAINTAINER", "HEALTHCHECK", "STOPSIGNAL", "SHELL", "ONBUILD"))
_FLAGS = {
    "RUN": {"mount", "network", "security", "device"},
    "COPY": {"chown", "chmod", "from", "link", "exclude", "parents"},
    "ADD": {"chown", "chmod", "from", "link", "exclude", "parents", "keep-git-dir", "checksum", "unpack"},
    "FROM": {"platform"},
}


@dataclass
class Heredoc:
    name: str
    content: str
    expand: bool


@dataclass
class Line:
    """An instruction with its flags taken off."""

    name: str
    rest: str
    number: int
    flags: Dict[str, str] = field(default_factory=lambda: {})
    heredocs: List[Heredoc] = field(default_factory=lambda: [])

    def fail(self, why: str) -> NoReturn:
        raise DockerfileSyntaxError(why, self.number)

    def words(self) -> Optional[List[str]]:
        """The words of the JSON form, None for the other one."""
        if not self.rest.startswith("["):
            return None
        try:
            parsed = json.loads(self.rest)
        except ValueError:
            return None
        words = cast(List[Any], parsed)
        return cast(List[str], words) if all(isinstance(one, str) for one in words) else None


def read_lines(text: str) -> Tuple[List[Line], str]:
    """The instructions of a Dockerfile and its escape character."""
    rows = text.lstrip("\ufeff").splitlines()
    escape = "\\"
    for row in rows:
        found = _DIRECTIVE.match(row.strip())
        if not found:
            break
        if found.group(1).lower() == "escape":
            escape = found.group(2)
    lines: List[Line] = []
    at = 0
    while at < len(rows):
        start, joined = at, ""
        while at < len(rows):
            row = rows[at]
            at += 1
            if row.strip().startswith("#") or (joined and not row.strip()):
                continue
            if row.rstrip().endswith(escape):
                joined += row.rstrip()[:-1]
                continue
            joined += row
            break
        if joined.strip():
            line = _line(joined.strip(), start + 1)
            at = _read_heredocs(line, rows, at)
            lines.append(line)
    return lines, escape


def _line(text: str, number: int) -> Line:
    name, _, rest = text.partition(" ")
    line = Line(name.upper(), rest.strip(), number)
    while line.rest.startswith("--"):
        found = _FLAG.match(line.rest)
        if not found:
            line.fail(f"{line.rest.split()[0]!r} is no flag")
        flag, value = found.group(1), found.group(2)
        if flag not in _FLAGS.get(line.name, ()):
            line.fail(f"unknown flag: {flag}")
        if flag in line.flags:
            line.fail(f"duplicate flag specified: {flag}")
        line.flags[flag] = "true" if value is None else value
        line.rest = line.rest[found.end() :]
    return line


def _read_heredocs(line: Line, rows: List[str], at: int) -> int:
    if line.name not in ("RUN", "COPY", "ADD"):
        return at
    for dash, mark, name in _HEREDOC.findall(line.rest):
        content = ""
        while True:
            if at >= len(rows):
                line.fail(f"unterminated heredoc {name}")
            row = rows[at].lstrip("\t") if dash else rows[at]
            at += 1
            if row == name:
                break
            content += row + "\n"
        line.heredocs.append(Heredoc(name, content, not mark))
    return at


def split_words(text: str, escape: str, line: Line) -> List[str]:
    """Words without their quotes; white space inside quotes and after the escape character stays."""
    words: List[str] = []
    word, inside, mark, at = "", False, "", 0
    while at < len(text):
        letter = text[at]
        at += 1
        if letter == escape and mark != "'" and at < len(text):
            word, inside = word + text[at], True
            at += 1
        elif mark:
            if letter == mark:
                mark = ""
            else:
                word += letter
        elif letter in "'\"":
            mark, inside = letter, True
        elif letter.isspace():
            if inside:
                words.append(word)
            word, inside = "", False
        else:
            word, inside = word + letter, True
    if mark:
        line.fail(f"a {mark} is not closed")
    return [*words, word] if inside else words


class Converter:
    """Calls a builder for each instruction."""

    def __init__(self, builder: TemplateBuilder, escape: str) -> None:
        self._builder = builder
        self._escape = escape
        self._vars: Dict[str, str] = {}
        self._command: Optional[Line] = None
        self._entry: Optional[Line] = None
        self._user_set = self._workdir_set = False

    def convert(self, lines: List[Line]) -> str:
        """The base image."""
        stages = [line for line in lines if line.name == "FROM"]
        if len(stages) > 1:
            raise DockerfileSyntaxError("Multi-stage Dockerfiles are not supported")
        if not stages:
            raise DockerfileSyntaxError("Dockerfile must contain a FROM instruction")
        base: Optional[str] = None
        early: List[Line] = []
        for line in lines:
            if line.name == "FROM":
                base = self._base(line)
                self._builder.set_user("root")
                self._builder.set_workdir("/")
                for one in early:
                    self._handle(one)
            elif base is None:
                if line.name != "ARG":
                    line.fail(f"{line.name} must be preceded by a FROM instruction")
                early.append(line)
                self._remember(line)
            else:
                self._handle(line)
        self._start()
        if not self._user_set:
            self._builder.set_user("user")
        if not self._workdir_set:
            self._builder.set_workdir("/home/user")
        assert base is not None
        return base

    def _base(self, line: Line) -> str:
        words = split_words(line.rest, self._escape, line)
        if len(words) != 1 and not (len(words) == 3 and words[1].lower() == "as"):
            line.fail("FROM requires either one or three arguments")
        return self._resolve(words[0])

    def _resolve(self, word: str) -> str:
        """All variables by their values so far."""
        return _VARIABLE.sub(lambda found: self._value(found, False), word)

    def _defaults(self, word: str) -> str:
        """Only what the server does not read: forms with a default."""
        return _VARIABLE.sub(lambda found: self._value(found, True), word)

    def _value(self, found: Any, keep_plain: bool) -> str:
        name, sign, other = found.group(1) or found.group(4), found.group(2), found.group(3)
        value = self._vars.get(name)
        if sign:
            there = bool(value) if sign.startswith(":") else value is not None
            plus = sign.endswith("+")
            return str((other if there else "") if plus else (value if there else other))
        return str(found.group(0)) if keep_plain else value or ""

    def _handle(self, line: Line) -> None:
        handler = getattr(self, f"_{line.name.lower()}", None)
        if handler is not None and line.name in _HANDLED:
            handler(line)
        elif line.name not in _IGNORED:
            print(f"Unsupported instruction: {line.name}")

    def _run(self, line: Line) -> None:
        if not line.rest:
            line.fail("RUN requires at least one argument")
        words = line.words()
        if words is not None:
            self._builder.run_cmd(" ".join(map(quote, words)))
        elif line.heredocs and _BARE_HEREDOC.match(line.rest):
            self._builder.run_cmd(_script(line.heredocs[0]))
        else:
            bodies = "".join(f"\n{one.content}{one.name}" for one in line.heredocs)
            self._builder.run_cmd(line.rest + bodies)

    def _copy(self, line: Line) -> None:
        words = line.words() or split_words(line.rest, self._escape, line)
        if len(words) < 2:
            line.fail(f"{line.name} requires at least two arguments")
        if "from" in line.flags:
            line.fail(f"{line.name} --from is not supported (multi-stage builds are not supported)")
        owner = self._defaults(line.flags["chown"]) if "chown" in line.flags else None
        mode = self._mode(line)
        dest = self._defaults(words[-1])
        documents = list(line.heredocs)
        for word in words[:-1]:
            if word.startswith("<<") and documents:
                self._builder.run_cmd(_write(documents.pop(0), dest, owner, mode), user="root")
                continue
            src = self._defaults(word)
            if line.name == "ADD" and re.match(r"[a-z][a-z0-9+.-]*://", src, re.IGNORECASE):
                line.fail(f"ADD from a remote URL is not supported: {src}")
            self._builder.copy(src, dest, user=owner, mode=mode)

    _add = _copy

    def _mode(self, line: Line) -> Optional[int]:
        if "chmod" not in line.flags:
            return None
        mode = self._resolve(line.flags["chmod"])
        if not _MODE.match(mode):
            line.fail(f"invalid chmod value {line.flags['chmod']!r}, expected an octal mode such as 0755")
        return int(mode, 8)

    def _one(self, line: Line) -> str:
        words = split_words(line.rest, self._escape, line)
        if len(words) != 1:
            line.fail(f"{line.name} requires exactly one argument")
        return self._defaults(words[0])

    def _workdir(self, line: Line) -> None:
        self._builder.set_workdir(self._one(line))
        self._workdir_set = True

    def _user(self, line: Line) -> None:
        self._builder.set_user(self._one(line))
        self._user_set = True

    def _pairs(self, line: Line) -> Dict[str, str]:
        words = split_words(line.rest, self._escape, line)
        if not words:
            line.fail(f"{line.name} requires at least one argument")
        if line.name == "ENV" and "=" not in words[0]:
            name, _, value = line.rest.partition(" ")
            return {name: value.strip()}
        pairs: Dict[str, str] = {}
        for word in words:
            name, sign, value = word.partition("=")
            if not name or (line.name == "ENV" and not sign):
                line.fail(f"{word!r} is not of the form NAME=VALUE")
            pairs[name] = value
        return pairs

    def _remember(self, line: Line) -> Dict[str, str]:
        pairs = self._pairs(line)
        shown = {name: self._defaults(value) for name, value in pairs.items()}
        self._vars.update({name: self._resolve(value) for name, value in pairs.items()})
        return shown

    def _env(self, line: Line) -> None:
        self._builder.set_envs(self._remember(line))

    _arg = _env

    def _cmd(self, line: Line) -> None:
        self._command = line

    def _entrypoint(self, line: Line) -> None:
        self._entry = line

    def _start(self) -> None:
        entry, command = self._entry, self._command
        if entry is None and command is None:
            return
        first = entry or command
        assert first is not None
        words = first.words()
        text = first.rest if words is None else " ".join(map(quote, words))
        if entry is not None and words is not None and command is not None and command.rest:
            more = command.words()
            text = " ".join(map(quote, [*words, *(["/bin/sh", "-c", command.rest] if more is None else more)]))
        if text.strip():
            self._builder.set_start_cmd(text, wait_for_timeout(20000))


_HANDLED = frozenset(("RUN", "COPY", "ADD", "WORKDIR", "USER", "ENV", "ARG", "CMD", "ENTRYPOINT"))


def _mark(document: Heredoc) -> str:
    mark = "CLOCHE_" + re.sub(r"\W", "_", document.name)
    while mark in document.content:
        mark += "_"
    return mark


def _script(document: Heredoc) -> str:
    """A RUN that is a script: with an interpreter line it is a program of its own."""
    if not document.content.startswith("#!"):
        return document.content
    path, mark = quote(f"/tmp/{document.name}"), _mark(document)
    write = f"cat <<'{mark}' >{path}\n{document.content}{mark}\n"
    return f"{write}chmod +x {path} && {path}\nCLOCHE_EXIT=$?; rm -f {path}; exit $CLOCHE_EXIT"


def _write(document: Heredoc, dest: str, owner: Optional[str], mode: Optional[int]) -> str:
    """A COPY of a document: a command that writes it."""
    mark = _mark(document)
    word = mark if document.expand else f"'{mark}'"
    # A shell would run what stands in $( ) and ` `; a Dockerfile has only variables.
    content = re.sub(r"\$\(|`", r"\\\g<0>", document.content) if document.expand else document.content
    where = quote(dest + document.name if dest.endswith("/") else dest)
    command = f"CLOCHE_DEST={where}\n"
    if not dest.endswith("/"):
        command += f'if [ -d "$CLOCHE_DEST" ]; then CLOCHE_DEST="$CLOCHE_DEST"/{quote(document.name)}; fi\n'
    command += f'mkdir -p "$(dirname "$CLOCHE_DEST")" && cat <<{word} >"$CLOCHE_DEST"\n{content}{mark}'
    if owner is not None:
        command += f'\nchown {quote(owner)} "$CLOCHE_DEST"'
    if mode is not None:
        command += f'\nchmod {mode:o} "$CLOCHE_DEST"'
    return command


def convert(content_or_path: str, builder: TemplateBuilder) -> str:
    """Add a Dockerfile's steps to a builder and give its base image."""
    text = content_or_path
    try:
        if os.path.isfile(content_or_path):
            with open(content_or_path, encoding="utf-8") as file:
                text = file.read()
    except (OSError, ValueError):
        # A content with NUL or of great length is no path.
        pass
    lines, escape = read_lines(text)
    return Converter(builder, escape).convert(lines)
