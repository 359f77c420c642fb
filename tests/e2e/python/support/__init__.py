# SPDX-License-Identifier: Apache-2.0
"""What the Python suites share: raw wire access, one face for sync and async, hosts' state."""
