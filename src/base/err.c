/* SPDX-License-Identifier: Apache-2.0 */
/* err.c - reasons with values in them. */
#include "base/err.h"
#include "base/core.h"

#include <stdarg.h>
#include <stdio.h>

static int negative(int code)
{
  return code > 0 ? -code : code;
}

int err_set(struct err *err, int code, const char *fmt, ...)
{
  code = negative(code);
  if (!err)
    return code;
  va_list ap;
  va_start(ap, fmt);
  err->code = code;
  vsnprintf(err->msg, sizeof(err->msg), fmt, ap);
  va_end(ap);
  return code;
}

int err_errno(struct err *err, const char *fmt, ...)
{
  int code = errno ? errno : EIO;
  if (!err)
    return -code;
  va_list ap;
  va_start(ap, fmt);
  err->code = -code;
  int n = vsnprintf(err->msg, sizeof(err->msg), fmt, ap);
  va_end(ap);
  if (n >= 0 && (size_t)n < sizeof(err->msg))
    snprintf(err->msg + n, sizeof(err->msg) - (size_t)n, ": %s", strerrordesc_np(code));
  return -code;
}

int err_wrap(struct err *err, const char *fmt, ...)
{
  if (!err)
    return -EIO;
  char inner[sizeof(err->msg)];
  memcpy(inner, err->msg, sizeof(inner));
  va_list ap;
  va_start(ap, fmt);
  int n = vsnprintf(err->msg, sizeof(err->msg), fmt, ap);
  va_end(ap);
  if (n >= 0 && (size_t)n < sizeof(err->msg))
    snprintf(err->msg + n, sizeof(err->msg) - (size_t)n, ": %s", inner);
  return err->code ? err->code : -EIO;
}
