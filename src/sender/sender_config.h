/* SPDX-License-Identifier: Apache-2.0 */
/* sender_config.h - the settings of the sender. The rows of src/cli/config.c write them; the sender only reads. */
#ifndef CLOCHE_SENDER_CONFIG_H
#define CLOCHE_SENDER_CONFIG_H

#include <stdbool.h>

struct sender_config {
  unsigned uid;          /* who it becomes; 0 = stays (tests without root) */
  bool private_allowed;  /* receivers may have private addresses or the machine's own */
  const char *ca;        /* PEM file of authorities beside the system's; "" = none */
  unsigned team_lookups; /* threads that look up names of one team at once */
  unsigned seconds;      /* longest wait for a receiver's answer, from the name to the last byte */
};

#endif
