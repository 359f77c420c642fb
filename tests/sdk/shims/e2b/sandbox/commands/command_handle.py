# SPDX-License-Identifier: Apache-2.0
from cloche import CommandExitException, CommandResult, PtySize  # noqa: F401
