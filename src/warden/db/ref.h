/* SPDX-License-Identifier: Apache-2.0 */
/* ref.h - how templates are named: [namespace/]alias[:tag], or a template id in the alias's place. Pure. */
#ifndef CLOCHE_WARDEN_DB_REF_H
#define CLOCHE_WARDEN_DB_REF_H

#include "base/base.h"

struct ref {
  struct str space;      /* empty: none was given */
  struct str alias, tag; /* tag: "default" when none was given */
};

#define REF_MAX 257

/* Trims and lowers; the parts point into `lowered`. -EINVAL with the reason. */
int ref_read(struct str text, struct buf *lowered, struct ref *out, struct err *err);
bool ref_word(struct str s, const char *extra); /* one or more of a-z, 0-9 and the extra characters */
/* A sandbox or template ID that a gate may choose, 1 to 47 of a-z and 0-9: they become names of files. */
bool id_valid(struct str id);

#endif
