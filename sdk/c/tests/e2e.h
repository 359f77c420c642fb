/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Cases against a real server: each a function that returns, or fails by CHECK with the line and what was seen. The
 * program prints {"name": null | "why not", ...}, which scripts/junit writes as a report.
 */
#ifndef CLOCHE_E2E_H
#define CLOCHE_E2E_H

#include <setjmp.h>
#include <stdio.h>
#include <string.h>
#include <cloche.h>

struct e2e {
  struct cloche *client;
  struct cloche_box *box; /* shared by cases that leave it as it was */
  struct cloche_error error;
  jmp_buf out;
  char why[2048];
  char unique[32];
};

extern struct e2e e2e;

__attribute__((noreturn, format(printf, 2, 3))) void e2e_fail(int line, const char *format, ...);

#define CHECK(condition)                                                                                               \
  do {                                                                                                                 \
    if (!(condition))                                                                                                  \
      e2e_fail(__LINE__, "%s", #condition);                                                                            \
  } while (0)
#define OK(call)                                                                                                       \
  do {                                                                                                                 \
    if ((call) != CLOCHE_OK)                                                                                           \
      e2e_fail(__LINE__, "%s: %s: %s", #call, cloche_code_name(e2e.error.code), e2e.error.message);                    \
  } while (0)
#define FAILS(expected, call)                                                                                          \
  do {                                                                                                                 \
    enum cloche_code code_ = (call);                                                                                   \
    if (code_ != (expected))                                                                                           \
      e2e_fail(__LINE__, "%s gave %s (%s)", #call, cloche_code_name(code_), e2e.error.message);                        \
  } while (0)
#define SAME(a, b)                                                                                                     \
  do {                                                                                                                 \
    const char *a_ = (a), *b_ = (b);                                                                                   \
    if (!a_ || strcmp(a_, b_) != 0)                                                                                    \
      e2e_fail(__LINE__, "%s is '%s', not '%s'", #a, a_ ? a_ : "NULL", b_);                                            \
  } while (0)
#define WITH(...)  CLOCHE_WITH(__VA_ARGS__)
#define WITHIN(ms) CLOCHE_WITH(cloche_call, .timeout_ms = (ms))
#define ERR        (&e2e.error)

struct e2e_case {
  const char *name;
  void (*run)(void);
};
extern const struct e2e_case sandbox_cases[], code_cases[], file_cases[], command_cases[], loop_cases[], keep_cases[];

#endif
