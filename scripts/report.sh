# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# report.sh - the cases of a shell script, told to the reader as they end and kept as a JUnit report in $TEST_REPORT
# where that is set. To be sourced:
#   report_begin SUITE
#   report_ok NAME
#   report_bad NAME [REASON]    the reason may have many lines
#   report_skipped NAME WHY     neither passed nor failed
#   report_end                  closes the report and counts; true when none failed and one passed
# A script that ends before report_end leaves a report that can't be read, which counts as a failure.
report_passed=0 report_failed=0 report_file=/dev/null report_suite=

report_escaped() {
  printf '%s' "$1" | tr -d '\000-\010\013\014\016-\037' | sed 's/&/\&amp;/g; s/</\&lt;/g; s/>/\&gt;/g; s/"/\&quot;/g'
}

report_case() { # name [element]
  printf '<testcase classname="%s" name="%s">%s</testcase>\n' \
    "$report_suite" "$(report_escaped "$1")" "${2:-}" >>"$report_file"
}

report_begin() {
  report_suite=$1 report_file=${TEST_REPORT:-/dev/null}
  printf '<?xml version="1.0" encoding="utf-8"?>\n<testsuite name="%s">\n' "$1" >"$report_file"
}

report_ok() {
  report_passed=$((report_passed + 1))
  printf 'ok    %s\n' "$1"
  report_case "$1"
}

report_bad() {
  report_failed=$((report_failed + 1))
  printf 'FAIL  %s\n' "$1"
  [ -z "${2:-}" ] || printf '%s\n' "$2" | sed 's/^/      /'
  report_case "$1" "<failure>$(report_escaped "${2:-failed}")</failure>"
}

report_skipped() {
  printf 'none  %s (%s)\n' "$1" "$2"
  report_case "$1" "<skipped message=\"$(report_escaped "$2")\"/>"
}

report_end() {
  echo '</testsuite>' >>"$report_file"
  echo "$report_suite: $report_passed passed, $report_failed failed"
  [ "$report_failed" -eq 0 ] && [ "$report_passed" -gt 0 ]
}
