/* SPDX-License-Identifier: Apache-2.0 */
/* event_type.h - the six kinds of lifecycle events and their names, which clients filter and subscribe by. */
#ifndef CLOCHE_WIRE_EVENT_TYPE_H
#define CLOCHE_WIRE_EVENT_TYPE_H

#include "base/base.h"

/* The numbers are in the database. */
enum event_type {
  EVENT_CREATED = 1,
  EVENT_UPDATED,
  EVENT_PAUSED,
  EVENT_RESUMED,
  EVENT_CHECKPOINTED,
  EVENT_KILLED,
  EVENT_TYPES_END,
};
#define EVENT_BIT(type) (1u << (type))
#define EVENT_BITS_ALL  (EVENT_BIT(EVENT_TYPES_END) - EVENT_BIT(EVENT_CREATED))
#define EVENT_NAMES_TEXT                                                                                               \
  "sandbox.lifecycle.created, sandbox.lifecycle.updated, sandbox.lifecycle.paused, sandbox.lifecycle.resumed, "        \
  "sandbox.lifecycle.checkpointed, sandbox.lifecycle.killed"

bool event_type_valid(enum event_type type);
const char *event_type_name(enum event_type type);  /* sandbox.lifecycle.created, ...; "" for none of the six */
const char *event_type_label(enum event_type type); /* the deprecated word; "" where there never was one */
enum event_type event_type_of(struct str name);     /* 0: none of the six */

#endif
