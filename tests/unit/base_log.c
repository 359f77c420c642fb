/* SPDX-License-Identifier: Apache-2.0 */
/* Entries of the journal: their form, and that they reach a socket of its kind. */
#include "unit.h"

#include <pty.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/un.h>

static void fields_are_told_apart_and_newlines_kept(void **state)
{
  cleanup_buf struct buf b = BUF_INIT(4096);
  log_journal_entry(&b, LOG_WARN, "gate", (const char *[]){"box", "i1", "took-us", "a\nb", NULL}, "it happened");
  struct str head = STR("MESSAGE=it happened\nPRIORITY=4\nSYSLOG_IDENTIFIER=cloche\nCLOCHE_ROLE=gate\n"
                        "CLOCHE_BOX=i1\nCLOCHE_TOOK_US\n\x03\0\0\0\0\0\0\0a\nb\n");
  assert_true(str_eq(buf_str(&b), head));
}

static void a_value_can_not_forge_a_line_on_a_terminal(void **state)
{
  int host, terminal;
  char got[4096];
  assert_int_equal(openpty(&host, &terminal, NULL, NULL, NULL), 0);
  log_open("gate", terminal);
  log_with(LOG_WARN,
           (const char *[]){"agent",
                            "x\n2026-01-01 error warden: forged\x1b[2J\xc2\x9b"
                            "1m",
                            NULL},
           "a\rb");
  ssize_t n = read(host, got, sizeof(got));
  log_open("unit", 2);
  close(terminal);
  close(host);
  assert_true(n > 0);
  struct str text = str_make(got, (size_t)n);
  assert_true(str_search(text, STR("gate: a?b agent=x?2026-01-01 error warden: forged?[2J??1m\r\n")) > 0);
  assert_int_equal(str_find(text, '\n'), n - 1);
}

static void entries_go_to_the_socket(void **state)
{
  struct sockaddr_un a = {.sun_family = AF_UNIX};
  char got[4096];
  snprintf(a.sun_path, sizeof(a.sun_path), "/tmp/cloche-journal.%d", getpid());
  unlink(a.sun_path);
  cleanup_fd int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  assert_int_equal(bind(fd, (struct sockaddr *)&a, sizeof(a)), 0);
  log_journal_at(a.sun_path);
  log_with(LOG_ERROR, (const char *[]){"team", "t1", NULL}, "number %d", 7);
  ssize_t n = recv(fd, got, sizeof(got), 0);
  unlink(a.sun_path);
  assert_true(n > 0);
  struct str text = str_make(got, (size_t)n);
  assert_true(str_starts(text, STR("MESSAGE=number 7\nPRIORITY=3\n")));
  assert_true(str_search(text, STR("\nCLOCHE_TEAM=t1\n")) > 0);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(fields_are_told_apart_and_newlines_kept),
      cmocka_unit_test(a_value_can_not_forge_a_line_on_a_terminal),
      cmocka_unit_test(entries_go_to_the_socket),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
