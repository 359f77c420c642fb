# SPDX-License-Identifier: Apache-2.0
"""Commands that succeed once what a template starts is ready."""

from __future__ import annotations

from shlex import quote


class ReadyCmd:
    """A command that a build repeats until it succeeds."""

    def __init__(self, cmd: str) -> None:
        self._cmd = cmd

    def get_cmd(self) -> str:
        return self._cmd


def wait_for_port(port: int) -> ReadyCmd:
    """Until something listens on a port."""
    return ReadyCmd(f'[ -n "$(ss -Htuln sport = :{port})" ]')


def wait_for_url(url: str, status_code: int = 200) -> ReadyCmd:
    """Until a URL answers with a status."""
    return ReadyCmd(f'curl -s -o /dev/null -w "%{{http_code}}" {quote(url)} | grep -q "{status_code}"')


def wait_for_process(process_name: str) -> ReadyCmd:
    """Until a process of this name runs."""
    return ReadyCmd(f"pgrep {quote(process_name)} > /dev/null")


def wait_for_file(filename: str) -> ReadyCmd:
    """Until a file is there."""
    return ReadyCmd(f"[ -f {quote(filename)} ]")


def wait_for_timeout(timeout: int) -> ReadyCmd:
    """For so many milliseconds, at least a second."""
    return ReadyCmd(f"sleep {max(1, timeout // 1000)}")
