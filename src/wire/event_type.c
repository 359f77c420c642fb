/* SPDX-License-Identifier: Apache-2.0 */
/* event_type.c - see event_type.h. */
#include "wire/event_type.h"

/* The labels are older than the names; a checkpoint never had one. */
static const struct {
  const char *name, *label;
} types[EVENT_TYPES_END] = {
    [EVENT_CREATED] = {"sandbox.lifecycle.created", "create"},
    [EVENT_UPDATED] = {"sandbox.lifecycle.updated", "update"},
    [EVENT_PAUSED] = {"sandbox.lifecycle.paused", "pause"},
    [EVENT_RESUMED] = {"sandbox.lifecycle.resumed", "resume"},
    [EVENT_CHECKPOINTED] = {"sandbox.lifecycle.checkpointed", ""},
    [EVENT_KILLED] = {"sandbox.lifecycle.killed", "kill"},
};

bool event_type_valid(enum event_type type)
{
  return type >= EVENT_CREATED && type < EVENT_TYPES_END;
}

const char *event_type_name(enum event_type type)
{
  return event_type_valid(type) ? types[type].name : "";
}

const char *event_type_label(enum event_type type)
{
  return event_type_valid(type) ? types[type].label : "";
}

enum event_type event_type_of(struct str name)
{
  for (enum event_type t = EVENT_CREATED; t < EVENT_TYPES_END; t++)
    if (str_is(name, types[t].name))
      return t;
  return 0;
}
