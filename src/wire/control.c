/* SPDX-License-Identifier: Apache-2.0 */
/* control.c - see control.h. */
#include "wire/control.h"

#include "wire/ipc.h"
#include <stdio.h>

static void (*settings_take)(struct str pack, void *arg);
static void *settings_arg;

void control_on_settings(void (*take)(struct str pack, void *arg), void *arg)
{
  settings_take = take;
  settings_arg = arg;
}

bool control_settings(struct str packet)
{
  if (!packet.n || packet.p[0] != CONTROL_SETTINGS || !settings_take)
    return false;
  settings_take(str_skip(packet, 1), settings_arg);
  return true;
}

int control_failed(struct ipc *control, const struct err *err)
{
  char word[600];
  log_error("%s", err->msg);
  int n = snprintf(word, sizeof(word), "%c%s", CONTROL_FAILED, err->msg);
  ipc_send(control, str_make(word, (size_t)MIN(n, (int)sizeof(word) - 1)), -1);
  return 1;
}
