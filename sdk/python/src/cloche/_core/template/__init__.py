# SPDX-License-Identifier: Apache-2.0
"""Templates without I/O towards the server: the builder, Dockerfiles, files to copy, logs."""
