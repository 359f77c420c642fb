eval "$__cloche_code"
# Runs the cell, on the first line so that bash counts its lines right. Being sourced, it is quiet
# about background jobs as a script is, although the shell itself is interactive.
