/* SPDX-License-Identifier: Apache-2.0 */
/* log.c - one write per line, so that lines of several processes never mix. */
#include "base/log.h"
#include "base/buf.h"
#include "base/clock.h"
#include "base/core.h"
#include "base/fdx.h"
#include "base/json.h"
#include "base/str.h"

#include <endian.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#define JOURNAL_SOCKET "/run/systemd/journal/socket"

static const char *log_role = "cloche";
static int log_fd = 2;
static int journal_fd = -1; /* connected; -1: lines go to log_fd */
static bool log_words = true;
static enum log_level log_least = LOG_INFO;
static const char *const level_names[] = {"debug", "info", "warn", "error"};

/* ---- the journal ---- */

/* "device:inode" of the stream that systemd gave us: who passes another one on to us means that, not the journal. */
static bool is_journal(int fd)
{
  const char *stream = getenv("JOURNAL_STREAM");
  struct stat st;
  char own[64];
  if (!stream || fstat(fd, &st))
    return false;
  snprintf(own, sizeof(own), "%ju:%ju", (uintmax_t)st.st_dev, (uintmax_t)st.st_ino);
  return !strcmp(stream, own);
}

void log_journal_at(const char *socket_path)
{
  struct sockaddr_un a = {.sun_family = AF_UNIX};
  int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  if (fd < 0 || str_copyz(str_of(socket_path), a.sun_path, sizeof(a.sun_path)) ||
      connect(fd, (struct sockaddr *)&a, sizeof(a))) {
    if (fd >= 0)
      close(fd);
    return;
  }
  if (journal_fd >= 0)
    close(journal_fd);
  journal_fd = fd;
}

/* NAME=value, or NAME, a newline, the length in 8 little-endian bytes and the value, where that has a newline. */
static void put_field(struct buf *b, const char *name, struct str value)
{
  uint64_t n = htole64(value.n);
  buf_addz(b, name);
  if (str_find(value, '\n') < 0) {
    buf_addc(b, '=');
  } else {
    buf_addc(b, '\n');
    buf_add(b, &n, sizeof(n));
  }
  buf_adds(b, value);
  buf_addc(b, '\n');
}

static void put_own_field(struct buf *b, const char *key, const char *value)
{
  char name[64] = "CLOCHE_";
  size_t n = strlen(name);
  for (; *key && n + 1 < sizeof(name); key++) {
    char c = *key >= 'a' && *key <= 'z' ? (char)(*key - 'a' + 'A') : *key;
    name[n++] = (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ? c : '_';
  }
  name[n] = 0;
  put_field(b, name, str_of(value ? value : ""));
}

void log_journal_entry(struct buf *b, enum log_level level, const char *role, const char *const *fields,
                       const char *msg)
{
  static const char *const priorities[] = {"7", "6", "4", "3"}; /* of syslog */
  put_field(b, "MESSAGE", str_of(msg));
  put_field(b, "PRIORITY", str_of(priorities[level]));
  put_field(b, "SYSLOG_IDENTIFIER", STR("cloche"));
  put_field(b, "CLOCHE_ROLE", str_of(role));
  for (; fields && fields[0]; fields += 2)
    put_own_field(b, fields[0], fields[1]);
}

static bool send_entry(enum log_level level, const char *const *fields, const char *msg)
{
  cleanup_buf struct buf b = BUF_INIT(65536);
  if (journal_fd < 0)
    return false;
  log_journal_entry(&b, level, log_role, fields, msg);
  return !buf_failed(&b) && send(journal_fd, b.p, b.n, MSG_NOSIGNAL) == (ssize_t)b.n;
}

/* ---- lines ---- */

void log_open(const char *role, int fd)
{
  if (journal_fd < 0 && is_journal(fd))
    log_journal_at(JOURNAL_SOCKET);
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
  if (b->n)
    text_blank_controls(b->p, b->n); /* a value must not look like a line of ours, nor steer the terminal */
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
  if (send_entry(level, fields, msg))
    return;
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
