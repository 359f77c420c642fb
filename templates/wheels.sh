# SPDX-License-Identifier: Apache-2.0
# wheels.sh - wheels of a lock file, fetched by the host for the Python of a template.
#
# Sourced by `build` and `lock`. The host's pip asks whatever index it is set up for.
# shellcheck shell=bash

# Python of the templates' Debian release.
readonly wheels_python=3.13

# wheels_fetch MACHINE LOCK DIR: the wheels that LOCK names, for a MACHINE as uname calls it.
wheels_fetch() {
	local machine=$1 lock=$2 dir=$3 platforms=() minor
	for minor in 1 2010 2014; do
		platforms+=(--platform "manylinux${minor}_$machine")
	done
	for minor in {5..41}; do # glibc 2.41 is Debian 13's
		platforms+=(--platform "manylinux_2_${minor}_$machine")
	done
	mkdir -p "$dir"
	python3 -m pip download -q --no-deps --only-binary=:all: --implementation cp \
		--python-version "$wheels_python" --abi "cp${wheels_python/./}" --abi abi3 --abi none "${platforms[@]}" \
		-d "$dir" -r "$lock"
}
