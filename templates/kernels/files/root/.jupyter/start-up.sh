#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# start-up.sh - the start command that templates for the original code interpreter name.
#
# There it starts Jupyter and a server on port 49999. Here both are part of every box, so this only waits until the
# server answers; a template that names it builds and starts as it would without it.
for _ in $(seq 100); do
	curl -sf -o /dev/null http://127.0.0.1:49999/health && exit 0
	sleep 0.1
done
echo 'start-up.sh: the code interpreter does not answer on port 49999 (/health) after 10 s' >&2
exit 1
