# SPDX-License-Identifier: Apache-2.0
"""Ends the agent of a sandbox by the signal of a bad access, as a bug of it would."""

from contextlib import suppress

from e2b import CommandExitException, Sandbox, SandboxException

box = Sandbox.create(timeout=60)
with suppress(CommandExitException, SandboxException, OSError):
    box.commands.run("kill -SEGV 1; sleep 5", user="root", timeout=10)
