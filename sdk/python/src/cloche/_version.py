# SPDX-License-Identifier: Apache-2.0
"""The one place of the package's version: pyproject.toml and the User-Agent header read it."""

__version__ = "0.1.0"
