# SPDX-License-Identifier: Apache-2.0
# apt.sh - where this host gets its Debian packages from, for programs that make a Debian root.
#
# Sourced by `build` and `debian`. No mirror is named anywhere: the host's own serves (or `mirror`, where that is set),
# else mmdebstrap's default.
# shellcheck shell=bash

# The URI under which this host gets the archive with the given label.
host_archive() {
	apt-get indextargets --format '$(LABEL) $(REPO_URI)' 'Created-By: Packages' 'Origin: Debian' 2>/dev/null |
		sed -n "s|^$1 ||p" | head -n 1
}

# Source lines for a suite, or nothing where mmdebstrap should decide.
source_lines() {
	local main=${mirror:-$(host_archive Debian)} security
	[[ $main ]] || return 0
	printf 'deb %s %s main\n' "${main%/}" "$1"
	case $1 in sid | unstable | testing) return 0 ;; esac
	printf 'deb %s %s main\n' "${main%/}" "$1-updates"
	security=$(host_archive Debian-Security)
	[[ -z $security ]] || printf 'deb %s %s-security main\n' "${security%/}" "$1"
}

# How this host reaches its mirror: proxies and leniency, as apt options.
host_options() {
	apt-config dump | grep -E '^Acquire::(https?::Proxy|Check-Valid-Until|Retries)[ :]' |
		sed -E 's/^([^ ]+) "(.*)";$/\1=\2/' | grep -v '=$' || true
}
