#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Starts the Java kernel: compiled classes and, where there is one, a class archive that spares the
# virtual machine most of its start.
#
# A template prepares both once with `main.sh --prepare`; they are kept by a key made of the kernel's
# source and the Java release, so an upgrade of either makes them stale, never wrong. Where
# nothing was prepared the first start compiles into the box's own cache.
set -eu

here=$(dirname "$(readlink -f "$0")")
java=$(readlink -f /usr/bin/java)
key=$(cat "$here"/*.java "$(dirname "$java")/../release" 2>/dev/null | cksum | tr ' ' -)
prepared=/usr/local/lib/cloche/java
cache=${HOME:-/root}/.cache/cloche-java

# A jar, because class archives take no directories.
compile() {
    mkdir -p "$1"
    fresh=$(mktemp -d "$1/new.XXXXXX")
    /usr/bin/javac -nowarn -XDignore.symbol.file=true -d "$fresh/classes" "$here"/*.java >&2
    "$(dirname "$java")/jar" --create --no-compress --file "$fresh/kernel.jar" -C "$fresh/classes" . >&2
    rm -r "$fresh/classes"
    chmod 755 "$fresh"
    mv -T "$fresh" "$1/$key" 2>/dev/null || rm -r "$fresh"
}

# -Xshare:auto falls back in silence when the archive does not fit this machine's Java. The first compiler
# alone halves the time to a first result: a cell is compiled by javac, which the second one would go on
# compiling for seconds. CLOCHE_JAVA_OPTIONS has the last word, for example -XX:TieredStopAtLevel=4.
kernel() {
    # shellcheck disable=SC2086
    set -- -XX:+UseSerialGC -XX:TieredStopAtLevel=1 -XX:-UsePerfData -Xshare:auto -Xlog:disable -Xlog:all=error:stderr \
        -Djava.awt.headless=true --add-opens java.base/java.io=ALL-UNNAMED --add-opens java.base/java.lang=ALL-UNNAMED \
        --add-opens java.base/java.util=ALL-UNNAMED --add-opens java.base/java.util.concurrent=ALL-UNNAMED \
        --add-opens jdk.random/jdk.random=ALL-UNNAMED \
        -cp "$home/kernel.jar" ${CLOCHE_JAVA_OPTIONS-} "$@"
    exec "$java" "$@"
}

if [ "${1-}" = --prepare ]; then
    [ -d "$prepared/$key" ] || compile "$prepared"
    home=$prepared/$key
    (kernel -XX:ArchiveClassesAtExit="$home/kernel.jsa" cloche.Kernel --rehearse) </dev/null
    exit
fi

home=$prepared/$key
if [ ! -d "$home" ]; then
    home=$cache/$key
    [ -d "$home" ] || compile "$cache"
fi
[ -f "$home/kernel.jsa" ] && kernel -XX:SharedArchiveFile="$home/kernel.jsa" cloche.Kernel
kernel cloche.Kernel
