/* SPDX-License-Identifier: Apache-2.0 */
/* isolation.c - see isolation.h. */
#include "wire/isolation.h"

static const char *const names[] = {
    [ISOLATION_ANY] = "default", [ISOLATION_PROCESS] = "process", [ISOLATION_MICROVM] = "microvm"};

int isolation_read(struct str word, unsigned *out)
{
  for (unsigned i = 0; i < ARRAY_LEN(names); i++)
    if (str_is(word, names[i]))
      return *out = i, 0;
  return -EINVAL;
}

const char *isolation_name(uint64_t isolation)
{
  return names[isolation < ARRAY_LEN(names) ? isolation : ISOLATION_ANY];
}
