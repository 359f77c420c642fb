# SPDX-License-Identifier: Apache-2.0
"""The files that a COPY takes: globs, .dockerignore, hash and archive.

The hash is the name under which the server keeps the archive. It covers the names, modes and contents of the files, so
what did not change is not sent again.
"""

from __future__ import annotations

import hashlib
import os
import posixpath
import re
import stat
import tarfile
import tempfile
from typing import IO, List, Pattern, Set, Tuple

from ...exceptions import TemplateException

CHUNK = 1 << 20
_GLOB = re.compile(r"[*?\[]")


def check_relative(src: str) -> None:
    if os.path.isabs(src):
        raise TemplateException(f'Invalid source path "{src}": it must be relative to the context directory')
    if os.path.normpath(src).split(os.sep)[0] == "..":
        raise TemplateException(f'Invalid source path "{src}": it leaves the context directory')


def pattern_regex(pattern: str) -> Pattern[str]:
    """A pattern of .dockerignore or COPY as a regular expression: `**` crosses directories, `*` and `?` do not."""
    out, at = "", 0
    while at < len(pattern):
        letter = pattern[at]
        if pattern.startswith("**", at):
            at += 2
            if pattern.startswith("/", at):
                at += 1
                out += "(?:.*/)?"
            else:
                out += ".*"
            continue
        if letter == "[":
            end = pattern.find("]", at + 2)
            if end < 0:
                raise TemplateException(f"Invalid pattern {pattern!r}: '[' has no end")
            inner = pattern[at + 1 : end].replace("\\", "\\\\")
            out += f"[{'^' + inner[1:] if inner[0] in '!^' else inner}]"
            at = end
        elif letter == "\\" and at + 1 < len(pattern):
            at += 1
            out += re.escape(pattern[at])
        else:
            out += {"*": "[^/]*", "?": "[^/]"}.get(letter, re.escape(letter))
        at += 1
    try:
        return re.compile(out + r"\Z", re.DOTALL)
    except re.error as error:
        raise TemplateException(f"Invalid pattern {pattern!r}: {error}") from None


def read_dockerignore(context: str) -> List[str]:
    path = os.path.join(context, ".dockerignore")
    if not os.path.exists(path):
        return []
    with open(path, encoding="utf-8-sig") as file:
        return [line.strip() for line in file if line.strip() and not line.startswith("#")]


class Ignored:
    """Patterns of .dockerignore: the last one that matches a path, or a directory above it, decides."""

    def __init__(self, patterns: List[str], context: str) -> None:
        self._rules: List[Tuple[bool, Pattern[str]]] = []
        for line in patterns:
            text = line.strip()
            keep = text.startswith("!")
            text = text[1:].strip() if keep else text
            if not text:
                raise TemplateException(f"Invalid ignore pattern {line!r}: it names nothing")
            if os.path.isabs(text) and not os.path.relpath(text, context).startswith(".."):
                text = os.path.relpath(text, context)
            clean = posixpath.normpath(text.replace(os.sep, "/")).lstrip("/")
            self._rules.append((keep, pattern_regex(clean)))
        self.keeps_any = any(keep for keep, _ in self._rules)

    def __call__(self, path: str) -> bool:
        parts = path.split("/")
        above = ["/".join(parts[:depth]) for depth in range(1, len(parts) + 1)]
        ignored = False
        for keep, regex in self._rules:
            if keep == ignored and any(regex.match(one) for one in above):
                ignored = not keep
        return ignored


def _walk(context: str, at: str, ignored: Ignored, found: Set[str]) -> None:
    with os.scandir(os.path.join(context, at)) as entries:
        for entry in entries:
            path = entry.name if at == "." else f"{at}/{entry.name}"
            skip = ignored(path)
            if not skip:
                found.add(path)
            if entry.is_dir(follow_symlinks=False) and (not skip or ignored.keeps_any):
                _walk(context, path, ignored, found)


def _matches(src: str, context: str) -> List[str]:
    clean = posixpath.normpath(src.replace(os.sep, "/"))
    if not _GLOB.search(clean):
        return [clean] if os.path.lexists(os.path.join(context, clean)) else []
    everything: Set[str] = set()
    _walk(context, ".", Ignored([], context), everything)
    regex = pattern_regex(clean)
    return sorted(path for path in everything if regex.match(path))


def files_of(src: str, context: str, patterns: List[str]) -> List[str]:
    """Paths below the context that a source names, with what directories hold, in order."""
    context = os.path.abspath(context)
    ignored = Ignored(patterns, context)
    found: Set[str] = set()
    for path in _matches(src, context):
        if path != "." and ignored(path):
            continue
        whole = os.path.join(context, path)
        found.add(path)
        if os.path.isdir(whole) and not os.path.islink(whole):
            _walk(context, path, ignored, found)
    return sorted(found)


def files_hash(src: str, dest: str, context: str, patterns: List[str], follow: bool) -> str:
    files = files_of(src, context, patterns)
    if not files:
        raise ValueError(f"No files found in {os.path.join(context, src)}")
    digest = hashlib.sha256(f"COPY {src} {dest}".encode())
    for path in files:
        whole = os.path.join(context, path)
        digest.update(path.encode() + b"\0")
        link = os.path.islink(whole) and not (follow and os.path.exists(whole))
        info = os.lstat(whole) if link else os.stat(whole)
        digest.update(str(info.st_mode).encode() + b"\0")
        if link:
            digest.update(os.readlink(whole).encode())
        elif stat.S_ISREG(info.st_mode):
            with open(whole, "rb") as file:
                for piece in iter(lambda: file.read(CHUNK), b""):
                    digest.update(piece)
    return digest.hexdigest()


def archive(src: str, context: str, patterns: List[str], follow: bool, gzip: bool) -> IO[bytes]:
    """A tar file of what a source names, at its beginning; the caller closes it."""
    file = tempfile.TemporaryFile()  # noqa: SIM115 - the caller closes it
    try:
        with tarfile.open(fileobj=file, mode="w:gz" if gzip else "w", dereference=follow) as tar:
            for path in files_of(src, context, patterns):
                tar.add(os.path.join(context, path), arcname=path, recursive=False)
        file.seek(0)
    except BaseException:
        file.close()
        raise
    return file
