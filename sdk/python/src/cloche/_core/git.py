# SPDX-License-Identifier: Apache-2.0
"""git in a sandbox: data models, command lines, readers of its output.

Credentials of a call go through variables that a credential helper of that one command prints. They are in no command
line, no URL and no file, unless the caller asks for it by a name that begins with `dangerously`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from shlex import quote
from typing import Any, Dict, List, Literal, Optional, Tuple
from urllib.parse import quote as url_quote, urlsplit, urlunsplit

from ..exceptions import GitAuthException, GitUpstreamException, InvalidArgumentException

GitResetMode = Literal["soft", "mixed", "hard", "merge", "keep"]

GIT_ENVS = {"GIT_TERMINAL_PROMPT": "0"}
HELPER = '!f() { echo "username=$CLOCHE_GIT_USERNAME"; echo "password=$CLOCHE_GIT_PASSWORD"; }; f'
AUTH_WORDS = (
    "authentication failed", "terminal prompts disabled", "could not read username", "could not read password",
    "invalid username or password", "access denied", "permission denied", "not authorized",
)  # fmt: skip
UPSTREAM_WORDS = (
    "no upstream branch", "no upstream configured", "no tracking information", "set the remote as upstream",
    "set the upstream branch", "please specify which branch you want to merge with",
)  # fmt: skip
STATUS_WORDS = (
    ("U", "conflict"), ("R", "renamed"), ("C", "copied"), ("D", "deleted"), ("A", "added"), ("M", "modified"),
    ("T", "typechange"), ("?", "untracked"),
)  # fmt: skip


@dataclass
class GitFileStatus:
    """A file that differs from the last commit."""

    name: str
    status: str
    index_status: str
    working_tree_status: str
    staged: bool
    renamed_from: Optional[str] = None


@dataclass
class GitStatus:
    """What `git status` tells."""

    current_branch: Optional[str]
    upstream: Optional[str]
    ahead: int
    behind: int
    detached: bool
    file_status: List[GitFileStatus]

    def _count(self, status: str) -> int:
        return sum(one.status == status for one in self.file_status)

    @property
    def is_clean(self) -> bool:
        return not self.file_status

    @property
    def has_changes(self) -> bool:
        return bool(self.file_status)

    @property
    def has_staged(self) -> bool:
        return self.staged_count > 0

    @property
    def has_untracked(self) -> bool:
        return self.untracked_count > 0

    @property
    def has_conflicts(self) -> bool:
        return self.conflict_count > 0

    @property
    def total_count(self) -> int:
        return len(self.file_status)

    @property
    def staged_count(self) -> int:
        return sum(one.staged for one in self.file_status)

    @property
    def unstaged_count(self) -> int:
        return self.total_count - self.staged_count

    @property
    def untracked_count(self) -> int:
        return self._count("untracked")

    @property
    def conflict_count(self) -> int:
        return self._count("conflict")


@dataclass
class GitBranches:
    branches: List[str]
    current_branch: Optional[str]


def command(args: List[str], path: Optional[str] = None) -> str:
    where = ["-C", path] if path else []
    return " ".join(quote(part) for part in ["git", *where, *args])


def credential_args(username: Optional[str], password: Optional[str]) -> Tuple[List[str], Dict[str, str]]:
    """Options of git and variables that let one command log in."""
    if not username or not password:
        return [], {}
    envs = {"CLOCHE_GIT_USERNAME": username, "CLOCHE_GIT_PASSWORD": password}
    return ["-c", "credential.helper=", "-c", f"credential.helper={HELPER}"], envs


def check_credentials(action: str, username: Optional[str], password: Optional[str]) -> None:
    if password and not username:
        raise InvalidArgumentException(f"Username is required when using a password or token for git {action}.")


def with_credentials(url: str, username: str, password: str) -> str:
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https"):
        raise InvalidArgumentException("Only http(s) Git URLs support username/password credentials.")
    login = f"{url_quote(username, safe='')}:{url_quote(password, safe='')}"
    return urlunsplit(parts._replace(netloc=f"{login}@{parts.netloc.rpartition('@')[2]}"))


def clone_args(url: str, path: Optional[str], branch: Optional[str], depth: Optional[int]) -> List[str]:
    args = ["clone", url]
    if branch:
        args += ["--branch", branch, "--single-branch"]
    if depth:
        args += ["--depth", str(depth)]
    return [*args, path] if path else args


def init_args(path: str, bare: bool, initial_branch: Optional[str]) -> List[str]:
    args = ["init"]
    if initial_branch:
        args += ["--initial-branch", initial_branch]
    return [*args, *(["--bare"] if bare else []), path]


def remote_add_command(path: str, name: str, url: str, fetch: bool, overwrite: bool) -> str:
    if not name or not url:
        raise InvalidArgumentException("Both remote name and URL are required to add a git remote.")
    add = command(["remote", "add", *(["-f"] if fetch else []), name, url], path)
    if not overwrite:
        return add
    either = f"{add} || {command(['remote', 'set-url', name, url], path)}"
    return f"({either}) && {command(['fetch', name], path)}" if fetch else either


def commit_args(message: str, author_name: Optional[str], author_email: Optional[str], allow_empty: bool) -> List[str]:
    args: List[str] = []
    if author_name:
        args += ["-c", f"user.name={author_name}"]
    if author_email:
        args += ["-c", f"user.email={author_email}"]
    args += ["commit", "-m", message]
    return [*args, "--allow-empty"] if allow_empty else args


def reset_args(mode: Optional[str], target: Optional[str], paths: Optional[List[str]]) -> List[str]:
    modes = ("soft", "mixed", "hard", "merge", "keep")
    if mode and mode not in modes:
        raise InvalidArgumentException(f"Reset mode must be one of {', '.join(modes)}.")
    args = ["reset"]
    if mode:
        args.append(f"--{mode}")
    if target:
        args.append(target)
    return [*args, "--", *paths] if paths else args


def restore_args(
    paths: List[str], staged: Optional[bool], worktree: Optional[bool], source: Optional[str]
) -> List[str]:
    if not paths:
        raise InvalidArgumentException("At least one path is required.")
    if worktree is None:
        worktree = not staged
    if not staged and not worktree:
        raise InvalidArgumentException("At least one of staged or worktree must be true.")
    args = ["restore", *(["--worktree"] if worktree else []), *(["--staged"] if staged else [])]
    if source:
        args += ["--source", source]
    return [*args, "--", *paths]


def push_args(remote: Optional[str], branch: Optional[str], set_upstream: bool) -> List[str]:
    args = ["push"]
    if set_upstream and remote:
        args.append("--set-upstream")
    return args + [one for one in (remote, branch) if one]


def pull_args(remote: Optional[str], branch: Optional[str]) -> List[str]:
    return ["pull"] + [one for one in (remote, branch) if one]


def config_args(scope: str, path: Optional[str]) -> Tuple[str, Optional[str]]:
    word = (scope or "global").strip().lower()
    if word not in ("global", "local", "system"):
        raise InvalidArgumentException("Git config scope must be one of: global, local, system.")
    if word == "local" and not path:
        raise InvalidArgumentException("Repository path is required when scope is local.")
    return f"--{word}", path if word == "local" else None


def approve_command(username: str, password: str, host: str, protocol: str) -> str:
    if not username or not password:
        raise InvalidArgumentException("Both username and password are required to authenticate git.")
    lines = [f"protocol={protocol.strip() or 'https'}", f"host={host.strip() or 'github.com'}"]
    text = quote("\n".join(lines) + "\n")
    login = '"$CLOCHE_GIT_USERNAME" "$CLOCHE_GIT_PASSWORD"'
    return f"{{ printf %s {text}; printf 'username=%s\\npassword=%s\\n\\n' {login}; }} | git credential approve"


def failure(action: str, error: Any, username: Optional[str], password: Optional[str]) -> Optional[Exception]:
    """What a command that failed means, None where nothing more is known than its output."""
    said = f"{error.stderr}\n{error.stdout}".lower()
    if any(words in said for words in AUTH_WORDS):
        missing = "a password/token" if username and not password else "credentials"
        return GitAuthException(f"Git {action} requires {missing} for private repositories.")
    if action != "clone" and any(words in said for words in UPSTREAM_WORDS):
        return no_upstream(action)
    return None


def no_upstream(action: str) -> Exception:
    remedy = "push once with set_upstream=True" if action == "push" else "set it by a push with set_upstream=True"
    return GitUpstreamException(
        f"Git {action} failed because no upstream branch is configured: pass remote and branch, or {remedy}."
    )


_COUNTS = re.compile(r"(ahead|behind) (\d+)")


def _read_branch(line: str, status: GitStatus) -> None:
    name, _, counts = line.partition(" [")
    for word, number in _COUNTS.findall(counts):
        setattr(status, word, int(number))
    for prefix in ("No commits yet on ", "Initial commit on "):
        if name.startswith(prefix):
            name = name[len(prefix) :]
    if name.startswith("HEAD ") or name == "HEAD" or "detached" in name:
        status.detached = True
        return
    branch, _, upstream = name.partition("...")
    status.current_branch, status.upstream = branch or None, upstream or None


def read_status(output: str) -> GitStatus:
    """From `git status --porcelain=1 -b`."""
    status = GitStatus(None, None, 0, 0, False, [])
    for line in output.split("\n"):
        if line.startswith("## "):
            _read_branch(line[3:].rstrip(), status)
        elif len(line) > 3:
            index, tree, name = line[0], line[1], line[3:].rstrip()
            word = next((word for letter, word in STATUS_WORDS if letter in (index, tree)), "unknown")
            old, arrow, new = name.partition(" -> ")
            file = GitFileStatus(new if arrow else name, word, index, tree, index not in " ?", old if arrow else None)
            status.file_status.append(file)
    return status


def read_branches(output: str) -> GitBranches:
    """From `git branch --format='%(refname:short)\\t%(HEAD)'`."""
    found = GitBranches([], None)
    for line in output.split("\n"):
        name, _, head = line.strip().partition("\t")
        if name:
            found.branches.append(name)
            if head == "*":
                found.current_branch = name
    return found
