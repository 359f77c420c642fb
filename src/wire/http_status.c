/* SPDX-License-Identifier: Apache-2.0 */
/* http_status.c - see http_status.h. */
#include "wire/http_status.h"

#include <errno.h>

int wire_http_status(int error)
{
  switch (error) {
  case EINVAL:
  case E2BIG:
    return 400;
  case EACCES: /* the key was good a moment ago */
    return 401;
  case EPERM:
    return 403;
  case ENOENT:
  case ESTALE:
    return 404;
  case EBUSY:
  case EALREADY:
  case EEXIST:
  case EKEYREJECTED:
  case EINPROGRESS:
  case ENOTRECOVERABLE:
    return 409;
  case EFBIG:
  case EOWNERDEAD:
    return 422;
  case EAGAIN:
  case EDQUOT:
    return 429;
  case ENOSYS: /* another server, or this one with other settings, could */
    return 501;
  case ENOBUFS:
  case ESHUTDOWN:
    return 503;
  case ENOSPC:
    return 507;
  default:
    return 500;
  }
}
