# SPDX-License-Identifier: Apache-2.0
"""The place where `e2b_code_interpreter` has its asynchronous sandbox."""

from ._async.sandbox import AsyncSandbox

__all__ = ["AsyncSandbox"]
