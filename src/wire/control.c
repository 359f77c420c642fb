/* SPDX-License-Identifier: Apache-2.0 */
/* control.c - see control.h. */
#include "wire/control.h"

#include "wire/ipc.h"
#include <stdio.h>

int control_failed(struct ipc *control, const struct err *err)
{
  char word[600];
  log_error("%s", err->msg);
  int n = snprintf(word, sizeof(word), "%c%s", CONTROL_FAILED, err->msg);
  ipc_send(control, str_make(word, (size_t)MIN(n, (int)sizeof(word) - 1)), -1);
  return 1;
}
