# SPDX-License-Identifier: Apache-2.0
"""The place where `e2b_code_interpreter` has its blocking sandbox."""

from ._sync.sandbox import Sandbox

__all__ = ["Sandbox"]
