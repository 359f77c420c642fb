/* SPDX-License-Identifier: Apache-2.0 */
/* log.h - one line per event: words on a terminal, an entry of the journal with fields where standard error is the
 * journal's (JOURNAL_STREAM, systemd.exec(5)), a JSON object otherwise. Fields are `key=value` pairs given as
 * alternating C strings and closed by NULL; secrets never go here. */
#ifndef CLOCHE_LOG_H
#define CLOCHE_LOG_H

enum log_level { LOG_DEBUG, LOG_INFO, LOG_WARN, LOG_ERROR };

struct buf;

void log_open(const char *role, int fd); /* fd 2 unless told; decides the form. Before any right is given up */
/* Pure: an entry in the journal's native protocol. Fields become CLOCHE_NAME, in capitals. */
void log_journal_entry(struct buf *b, enum log_level level, const char *role, const char *const *fields,
                       const char *msg);
void log_journal_at(const char *socket_path); /* for tests: entries go there from now on */
void log_level_set(enum log_level level);
int log_level_parse(const char *word, enum log_level *out);
void log_line(enum log_level level, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* The same with fields: log_with(LOG_INFO, (const char *[]){"box", id, NULL}, "launched in %d us", us). */
void log_with(enum log_level level, const char *const *fields, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

#define log_debug(...) log_line(LOG_DEBUG, __VA_ARGS__)
#define log_info(...)  log_line(LOG_INFO, __VA_ARGS__)
#define log_warn(...)  log_line(LOG_WARN, __VA_ARGS__)
#define log_error(...) log_line(LOG_ERROR, __VA_ARGS__)

#endif
