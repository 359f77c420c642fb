/* SPDX-License-Identifier: Apache-2.0 */
/* recipe.h - how a template is to be built, as the gate sends it to the warden: a row of fields (tag, length, bytes)
 * that the gate wrote from the client's JSON. Both sides use this; the texts inside are the client's and mean nothing
 * here. */
#ifndef CLOCHE_WIRE_RECIPE_H
#define CLOCHE_WIRE_RECIPE_H

#include "base/base.h"

#define RECIPE_STEPS_MAX 500
#define RECIPE_MAX       (128u * 1024) /* bytes of all fields: it travels in one packet */

enum recipe_tag {
  RECIPE_IMAGE = 1, /* one of image and template */
  RECIPE_TEMPLATE,
  RECIPE_REGISTRY, /* JSON: credentials; kept in memory only */
  RECIPE_FORCE,    /* empty: nothing is taken from the cache */
  RECIPE_START,
  RECIPE_READY,
  RECIPE_KEEP,   /* empty: what a failed build left becomes the tag `failed` */
  RECIPE_DEBUG,  /* empty: a start command that fails is logged, not fatal */
  RECIPE_STEP,   /* begins a step: its type in upper case */
  RECIPE_ARG,    /* of the step */
  RECIPE_FILES,  /* of the step: hash of its archive */
  RECIPE_AGAIN,  /* of the step, empty: from here on nothing is taken from the cache */
  RECIPE_MOUNTS, /* lines "name TAB path": volumes that commands of steps see */
};

struct recipe_step {
  struct str type, files;
  struct str *args; /* in the arena */
  size_t nargs;
  bool force;
};

struct recipe {
  struct str image, template_ref, registry, start, ready, mounts;
  bool has_start, has_ready, force, keep, debug;
  struct recipe_step *steps; /* in the arena */
  size_t nsteps;
};

void recipe_put(struct buf *b, enum recipe_tag tag, struct str value);
/* Texts point into `packed`. -EINVAL when it is malformed. */
int recipe_read(struct arena *a, struct str packed, struct recipe *out, struct err *err);

#endif
