# SPDX-License-Identifier: Apache-2.0
"""Defaults of running code."""

DEFAULT_TEMPLATE = "code-interpreter-v1"
JUPYTER_PORT = 49999
DEFAULT_TIMEOUT = 300
