/* SPDX-License-Identifier: Apache-2.0 */
/* err.h - how things fail: a negative errno is returned and the reason, with the value that was wrong, is here. */
#ifndef CLOCHE_ERR_H
#define CLOCHE_ERR_H

struct err {
  int code; /* negative errno; 0 = none */
  char msg[512];
};

#define ERR_NONE ((struct err){0})

/* Both return `code` (made negative), so that `return err_set(err, -ENOENT, "...", ...)` reads well. err may be NULL.
 */
int err_set(struct err *err, int code, const char *fmt, ...) __attribute__((format(printf, 3, 4)));
int err_errno(struct err *err, const char *fmt, ...) __attribute__((format(printf, 2, 3))); /* errno + its text */
/* Puts "what: " before the message that is there and returns its code. */
int err_wrap(struct err *err, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

#endif
