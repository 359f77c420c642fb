/* SPDX-License-Identifier: Apache-2.0 */
/* log.c - one write per line, so that lines of several processes never mix. */
#include "base/log.h"
#include "base/buf.h"
#include "base/clock.h"
#include "base/core.h"
#include "base/fdx.h"
#include "base/json.h"

#include <stdarg.h>
#include <stdio.h>

static const char *log_role = "cloche";
static int log_fd = 2;
static bool log_words = true;
static enum log_level log_least = LOG_INFO;
static const char *const level_names[] = {"debug", "info", "warn", "error"};

void log_open(const char *role, int fd)
{
  log_role = role;
  log_fd = fd;
  log_words = isatty(fd) == 1;
}

void log_level_set(enum log_level level)
{
  log_least = level;
}

int log_level_parse(const char *word, enum log_level *out)
{
  for (size_t i = 0; i < ARRAY_LEN(level_names); i++)
    if (!strcmp(word, level_names[i])) {
      *out = (enum log_level)i;
      return 0;
    }
  return -EINVAL;
}

static void line_words(struct buf *b, enum log_level level, const char *when, const char *const *fields,
                       const char *msg)
{
  buf_addf(b, "%.19s %-5s %s: %s", when, level_names[level], log_role, msg);
  for (; fields && fields[0]; fields += 2)
    buf_addf(b, " %s=%s", fields[0], fields[1] ? fields[1] : "");
}

static void line_json(struct buf *b, enum log_level level, const char *when, const char *const *fields, const char *msg)
{
  struct jw w = JW(b);
  jw_open(&w, '{');
  jw_key(&w, "time");
  jw_z(&w, when);
  jw_key(&w, "level");
  jw_z(&w, level_names[level]);
  jw_key(&w, "role");
  jw_z(&w, log_role);
  jw_key(&w, "msg");
  jw_z(&w, msg);
  for (; fields && fields[0]; fields += 2) {
    jw_key(&w, fields[0]);
    jw_z(&w, fields[1] ? fields[1] : "");
  }
  jw_close(&w, '}');
}

static void log_v(enum log_level level, const char *const *fields, const char *fmt, va_list ap)
{
  if (level < log_least)
    return;
  char msg[1024], when[CLOCK_TEXT];
  vsnprintf(msg, sizeof(msg), fmt, ap);
  clock_text(clock_wall_us(), when);
  cleanup_buf struct buf b = BUF_INIT(16384);
  (log_words ? line_words : line_json)(&b, level, when, fields, msg);
  buf_addc(&b, '\n');
  if (b.n)
    fd_write_all(log_fd, b.p, b.n);
}

void log_line(enum log_level level, const char *fmt, ...)
{
  va_list ap;
  va_start(ap, fmt);
  log_v(level, NULL, fmt, ap);
  va_end(ap);
}

void log_with(enum log_level level, const char *const *fields, const char *fmt, ...)
{
  va_list ap;
  va_start(ap, fmt);
  log_v(level, fields, fmt, ap);
  va_end(ap);
}
