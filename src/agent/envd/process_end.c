/* SPDX-License-Identifier: Apache-2.0 */
/* process_end.c - end events, and the short memory of those that ended (30 s, at most 4,096 of them). */
#include "agent/envd/process_end.h"
#include <signal.h>
#include <stdio.h>
#include <sys/wait.h>

#define KEEP_US  (30 * 1000000LL)
#define KEEP_MAX 4096

static const char *const signal_words[] = {
    [1] = "hangup",
    [2] = "interrupt",
    [3] = "quit",
    [4] = "illegal instruction",
    [5] = "trace/breakpoint trap",
    [6] = "aborted",
    [7] = "bus error",
    [8] = "floating point exception",
    [9] = "killed",
    [10] = "user defined signal 1",
    [11] = "segmentation fault",
    [12] = "user defined signal 2",
    [13] = "broken pipe",
    [14] = "alarm clock",
    [15] = "terminated",
    [16] = "stack fault",
    [24] = "CPU time limit exceeded",
    [25] = "file size limit exceeded",
    [26] = "virtual timer expired",
    [27] = "profiling timer expired",
    [29] = "I/O possible",
    [30] = "power failure",
    [31] = "bad system call",
};

static void signal_text(int status, char text[END_TEXT])
{
  unsigned sig = (unsigned)WTERMSIG(status);
  const char *core = WCOREDUMP(status) ? " (core dumped)" : "";
  if (sig < ARRAY_LEN(signal_words) && signal_words[sig])
    snprintf(text, END_TEXT, "signal: %s%s", signal_words[sig], core);
  else
    snprintf(text, END_TEXT, "signal: signal %u%s", sig, core);
}

void process_end_describe(int status, char text[END_TEXT], struct msg_end *out)
{
  *out = (struct msg_end){0};
  if (WIFEXITED(status)) {
    out->exit_code = WEXITSTATUS(status);
    out->exited = true;
    snprintf(text, END_TEXT, "exit status %d", out->exit_code);
  } else {
    out->exit_code = -1;
    signal_text(status, text);
  }
  out->status = str_of(text);
  out->has_error = status != 0;
  if (out->has_error)
    out->error = out->status;
}

struct kept {
  int64_t until_us;
  uint32_t pid;
  int status;
  char *tag; /* NULL = none */
};

static VEC(struct kept) kept; /* oldest first */

static void kept_remove(size_t i)
{
  free(kept.p[i].tag);
  vec_remove(&kept, i);
}

static void kept_expire(void)
{
  int64_t now = clock_mono_us();
  size_t n = 0;
  while (n < kept.n && (kept.p[n].until_us <= now || kept.n - n > KEEP_MAX))
    free(kept.p[n++].tag);
  if (!n)
    return;
  memmove(kept.p, kept.p + n, (kept.n - n) * sizeof(*kept.p));
  kept.n -= n;
  if (kept.n == 0)
    vec_free(&kept);
}

void process_end_keep(uint32_t pid, struct str tag, bool has_tag, int status)
{
  struct kept k = {clock_mono_us() + KEEP_US, pid, status, has_tag ? xstrndup(tag.p ? tag.p : "", tag.n) : NULL};
  vec_push(&kept, k);
  kept_expire();
}

void process_end_forget(uint32_t pid, struct str tag, bool has_tag)
{
  kept_expire();
  for (size_t i = kept.n; i-- > 0;)
    if (kept.p[i].pid == pid || (has_tag && kept.p[i].tag && str_is(tag, kept.p[i].tag)))
      kept_remove(i);
}

bool process_end_find(const struct msg_selector *s, uint32_t *pid, int *status)
{
  kept_expire();
  for (size_t i = kept.n; i-- > 0;) {
    const struct kept *k = &kept.p[i];
    if (s->which == SELECT_PID ? k->pid != s->pid : !k->tag || !str_is(s->tag, k->tag))
      continue;
    *pid = k->pid;
    *status = k->status;
    return true;
  }
  return false;
}
