# SPDX-License-Identifier: Apache-2.0
# Made by tools/unasync.py from _async/git.py: change that file.
"""git in a sandbox, by its command line."""

from __future__ import annotations

from typing import Dict, List, NamedTuple, Optional

from .._core import git
from .._core.git import GIT_ENVS, GitBranches, GitResetMode, GitStatus
from .._core.process import CommandExitException, CommandResult
from ..exceptions import InvalidArgumentException
from .running import Commands


class _Options(NamedTuple):
    """What all calls pass on to the command."""

    envs: Optional[Dict[str, str]]
    user: Optional[str]
    cwd: Optional[str]
    timeout: Optional[float]
    request_timeout: Optional[float]


class Git:
    """git in a sandbox. `timeout` is the command's whole time in seconds, None or 0 for no limit."""

    def __init__(self, commands: Commands) -> None:
        self._commands = commands

    def _shell(
        self, command: str, opts: _Options, more: Optional[Dict[str, str]] = None
    ) -> CommandResult[str]:
        return self._commands.run(
            command,
            envs={**GIT_ENVS, **(opts.envs or {}), **(more or {})},
            user=opts.user,
            cwd=opts.cwd,
            timeout=opts.timeout,
            request_timeout=opts.request_timeout,
        )

    def _run(self, args: List[str], path: Optional[str], opts: _Options) -> CommandResult[str]:
        return self._shell(git.command(args, path), opts)

    def _remote(
        self,
        action: str,
        args: List[str],
        path: Optional[str],
        username: Optional[str],
        password: Optional[str],
        opts: _Options,
    ) -> CommandResult[str]:
        """Talk to a remote, with credentials if there are any."""
        login, secret = git.credential_args(username, password)
        try:
            return self._shell(git.command([*login, *args], path), opts, secret)
        except CommandExitException as error:
            known = git.failure(action, error, username, password)
            if known is None:
                raise
            raise known from error

    def clone(
        self,
        url: str,
        path: Optional[str] = None,
        branch: Optional[str] = None,
        depth: Optional[int] = None,
        username: Optional[str] = None,
        password: Optional[str] = None,
        envs: Optional[Dict[str, str]] = None,
        user: Optional[str] = None,
        cwd: Optional[str] = None,
        timeout: Optional[float] = None,
        request_timeout: Optional[float] = None,
        dangerously_store_credentials: bool = False,
    ) -> CommandResult[str]:
        """Clone a repository. Credentials are used once and kept nowhere, unless `dangerously_store_credentials`."""
        git.check_credentials("clone", username, password)
        opts = _Options(envs, user, cwd, timeout, request_timeout)
        if dangerously_store_credentials and username and password:
            url = git.with_credentials(url, username, password)
        args = git.clone_args(url, path, branch, depth)
        return self._remote("clone", args, None, username, password, opts)

    def init(
        self,
        path: str,
        bare: bool = False,
        initial_branch: Optional[str] = None,
        envs: Optional[Dict[str, str]] = None,
        user: Optional[str] = None,
        cwd: Optional[str] = None,
        timeout: Optional[float] = None,
        request_timeout: Optional[float] = None,
    ) -> CommandResult[str]:
        """Make a repository."""
        opts = _Options(envs, user, cwd, timeout, request_timeout)
        return self._run(git.init_args(path, bare, initial_branch), None, opts)

    def remote_add(
        self,
        path: str,
        name: str,
        url: str,
        fetch: bool = False,
        overwrite: bool = False,
        envs: Optional[Dict[str, str]] = None,
        user: Optional[str] = None,
        cwd: Optional[str] = None,
        timeout: Optional[float] = None,
        request_timeout: Optional[float] = None,
    ) -> CommandResult[str]:
        """Add a remote, or set its URL with `overwrite`."""
        opts = _Options(envs, user, cwd, timeout, request_timeout)
        return self._shell(git.remote_add_command(path, name, url, fetch, overwrite), opts)

    def remote_get(
        self,
        path: str,
        name: str,
        envs: Optional[Dict[str, str]] = None,
        user: Optional[str] = None,
        cwd: Optional[str] = None,
        timeout: Optional[float] = None,
        request_timeout: Optional[float] = None,
    ) -> Optional[str]:
        """The URL of a remote, None if there is no such remote."""
        if not name:
            raise InvalidArgumentException("Remote name is required.")
        opts = _Options(envs, user, cwd, timeout, request_timeout)
        found = self._shell(f"{git.command(['remote', 'get-url', name], path)} || true", opts)
        return found.stdout.strip() or None

    def status(
        self,
        path: str,
        envs: Optional[Dict[str, str]] = None,
        user: Optional[str] = None,
        cwd: Optional[str] = None,
        timeout: Optional[float] = None,
        request_timeout: Optional[float] = None,
    ) -> GitStatus:
        """Branch and changed files."""
        opts = _Options(envs, user, cwd, timeout, request_timeout)
        return git.read_status((self._run(["status", "--porcelain=1", "-b"], path, opts)).stdout)

    def branches(
        self,
        path: str,
        envs: Optional[Dict[str, str]] = None,
        user: Optional[str] = None,
        cwd: Optional[str] = None,
        timeout: Optional[float] = None,
        request_timeout: Optional[float] = None,
    ) -> GitBranches:
        """All branches and the current one."""
        opts = _Options(envs, user, cwd, timeout, request_timeout)
        args = ["branch", "--format=%(refname:short)\t%(HEAD)"]
        return git.read_branches((self._run(args, path, opts)).stdout)

    def create_branch(
        self,
        path: str,
        branch: str,
        envs: Optional[Dict[str, str]] = None,
        user: Optional[str] = None,
        cwd: Optional[str] = None,
        timeout: Optional[float] = None,
        request_timeout: Optional[float] = None,
    ) -> CommandResult[str]:
        """Make a branch and switch to it."""
        opts = _Options(envs, user, cwd, timeout, request_timeout)
        return self._run(["checkout", "-b", branch], path, opts)

    def checkout_branch(
        self,
        path: str,
        branch: str,
        envs: Optional[Dict[str, str]] = None,
        user: Optional[str] = None,
        cwd: Optional[str] = None,
        timeout: Optional[float] = None,
        request_timeout: Optional[float] = None,
    ) -> CommandResult[str]:
        """Switch to a branch."""
        opts = _Options(envs, user, cwd, timeout, request_timeout)
        return self._run(["checkout", branch], path, opts)

    def delete_branch(
        self,
        path: str,
        branch: str,
        force: bool = False,
        envs: Optional[Dict[str, str]] = None,
        user: Optional[str] = None,
        cwd: Optional[str] = None,
        timeout: Optional[float] = None,
        request_timeout: Optional[float] = None,
    ) -> CommandResult[str]:
        """Delete a branch."""
        opts = _Options(envs, user, cwd, timeout, request_timeout)
        return self._run(["branch", "-D" if force else "-d", branch], path, opts)

    def add(
        self,
        path: str,
        files: Optional[List[str]] = None,
        all: bool = True,
        envs: Optional[Dict[str, str]] = None,
        user: Optional[str] = None,
        cwd: Optional[str] = None,
        timeout: Optional[float] = None,
        request_timeout: Optional[float] = None,
    ) -> CommandResult[str]:
        """Stage files, all changes unless some are named."""
        opts = _Options(envs, user, cwd, timeout, request_timeout)
        args = ["add", "--", *files] if files else ["add", "-A" if all else "."]
        return self._run(args, path, opts)

    def commit(
        self,
        path: str,
        message: str,
        author_name: Optional[str] = None,
        author_email: Optional[str] = None,
        allow_empty: bool = False,
        envs: Optional[Dict[str, str]] = None,
        user: Optional[str] = None,
        cwd: Optional[str] = None,
        timeout: Optional[float] = None,
        request_timeout: Optional[float] = None,
    ) -> CommandResult[str]:
        """Commit what is staged."""
        opts = _Options(envs, user, cwd, timeout, request_timeout)
        args = git.commit_args(message, author_name, author_email, allow_empty)
        return self._run(args, path, opts)

    def reset(
        self,
        path: str,
        mode: Optional[GitResetMode] = None,
        target: Optional[str] = None,
        paths: Optional[List[str]] = None,
        envs: Optional[Dict[str, str]] = None,
        user: Optional[str] = None,
        cwd: Optional[str] = None,
        timeout: Optional[float] = None,
        request_timeout: Optional[float] = None,
    ) -> CommandResult[str]:
        """Move the current branch, or unstage paths."""
        opts = _Options(envs, user, cwd, timeout, request_timeout)
        return self._run(git.reset_args(mode, target, paths), path, opts)

    def restore(
        self,
        path: str,
        paths: List[str],
        staged: Optional[bool] = None,
        worktree: Optional[bool] = None,
        source: Optional[str] = None,
        envs: Optional[Dict[str, str]] = None,
        user: Optional[str] = None,
        cwd: Optional[str] = None,
        timeout: Optional[float] = None,
        request_timeout: Optional[float] = None,
    ) -> CommandResult[str]:
        """Bring files back as they were committed."""
        opts = _Options(envs, user, cwd, timeout, request_timeout)
        return self._run(git.restore_args(paths, staged, worktree, source), path, opts)

    def push(
        self,
        path: str,
        remote: Optional[str] = None,
        branch: Optional[str] = None,
        set_upstream: bool = True,
        username: Optional[str] = None,
        password: Optional[str] = None,
        envs: Optional[Dict[str, str]] = None,
        user: Optional[str] = None,
        cwd: Optional[str] = None,
        timeout: Optional[float] = None,
        request_timeout: Optional[float] = None,
    ) -> CommandResult[str]:
        """Push a branch. Credentials are used once and kept nowhere."""
        git.check_credentials("push", username, password)
        opts = _Options(envs, user, cwd, timeout, request_timeout)
        if username and password:
            remote = self._only_remote(path, remote, opts)
        args = git.push_args(remote, branch, set_upstream)
        return self._remote("push", args, path, username, password, opts)

    def pull(
        self,
        path: str,
        remote: Optional[str] = None,
        branch: Optional[str] = None,
        username: Optional[str] = None,
        password: Optional[str] = None,
        envs: Optional[Dict[str, str]] = None,
        user: Optional[str] = None,
        cwd: Optional[str] = None,
        timeout: Optional[float] = None,
        request_timeout: Optional[float] = None,
    ) -> CommandResult[str]:
        """Pull a branch. Credentials are used once and kept nowhere."""
        git.check_credentials("pull", username, password)
        opts = _Options(envs, user, cwd, timeout, request_timeout)
        if not remote and not branch and not self._has_upstream(path, opts):
            raise git.no_upstream("pull")
        if username and password:
            remote = self._only_remote(path, remote, opts)
        return self._remote("pull", git.pull_args(remote, branch), path, username, password, opts)

    def set_config(
        self,
        key: str,
        value: str,
        scope: str = "global",
        path: Optional[str] = None,
        envs: Optional[Dict[str, str]] = None,
        user: Optional[str] = None,
        cwd: Optional[str] = None,
        timeout: Optional[float] = None,
        request_timeout: Optional[float] = None,
    ) -> CommandResult[str]:
        """Set a value of git's configuration."""
        if not key:
            raise InvalidArgumentException("Git config key is required.")
        flag, repository = git.config_args(scope, path)
        opts = _Options(envs, user, cwd, timeout, request_timeout)
        return self._run(["config", flag, key, value], repository, opts)

    def get_config(
        self,
        key: str,
        scope: str = "global",
        path: Optional[str] = None,
        envs: Optional[Dict[str, str]] = None,
        user: Optional[str] = None,
        cwd: Optional[str] = None,
        timeout: Optional[float] = None,
        request_timeout: Optional[float] = None,
    ) -> Optional[str]:
        """A value of git's configuration, None if it is not set."""
        if not key:
            raise InvalidArgumentException("Git config key is required.")
        flag, repository = git.config_args(scope, path)
        opts = _Options(envs, user, cwd, timeout, request_timeout)
        ask = git.command(["config", flag, "--get", key], repository)
        return (self._shell(f"{ask} || true", opts)).stdout.strip() or None

    def dangerously_authenticate(
        self,
        username: str,
        password: str,
        host: str = "github.com",
        protocol: str = "https",
        envs: Optional[Dict[str, str]] = None,
        user: Optional[str] = None,
        cwd: Optional[str] = None,
        timeout: Optional[float] = None,
        request_timeout: Optional[float] = None,
    ) -> CommandResult[str]:
        """Keep credentials in a file of the sandbox, where all of its programs can read them."""
        approve = git.approve_command(username, password, host, protocol)
        opts = _Options(envs, user, cwd, timeout, request_timeout)
        self._run(["config", "--global", "credential.helper", "store"], None, opts)
        return self._shell(approve, opts, git.credential_args(username, password)[1])

    def configure_user(
        self,
        name: str,
        email: str,
        scope: str = "global",
        path: Optional[str] = None,
        envs: Optional[Dict[str, str]] = None,
        user: Optional[str] = None,
        cwd: Optional[str] = None,
        timeout: Optional[float] = None,
        request_timeout: Optional[float] = None,
    ) -> CommandResult[str]:
        """Set who commits."""
        if not name or not email:
            raise InvalidArgumentException("Both name and email are required.")
        flag, repository = git.config_args(scope, path)
        opts = _Options(envs, user, cwd, timeout, request_timeout)
        self._run(["config", flag, "user.name", name], repository, opts)
        return self._run(["config", flag, "user.email", email], repository, opts)

    def _has_upstream(self, path: str, opts: _Options) -> bool:
        try:
            self._run(["rev-parse", "--abbrev-ref", "--symbolic-full-name", "@{u}"], path, opts)
        except CommandExitException:
            return False
        return True

    def _only_remote(self, path: str, remote: Optional[str], opts: _Options) -> str:
        if remote:
            return remote
        names = (self._run(["remote"], path, opts)).stdout.split()
        if len(names) != 1:
            raise InvalidArgumentException(
                f"Remote is required when using username/password and the repository has {len(names)} remotes."
            )
        return names[0]
