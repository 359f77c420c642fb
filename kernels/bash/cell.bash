__cloche_begin; if __cloche_status "$__cloche_last"; then eval "$__cloche_code"; else eval "$__cloche_code"; fi
# Runs the cell, on the first line so that bash counts its lines right, and with $? as the cell before left it (the
# condition of an `if` may fail under errexit). Being sourced, it is quiet about background jobs as a
# script is, although the shell itself is interactive.
