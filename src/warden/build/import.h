/* SPDX-License-Identifier: Apache-2.0 */
/* import.h - an image file becomes a template as it is, without a build: for the host's root user. */
#ifndef CLOCHE_WARDEN_BUILD_IMPORT_H
#define CLOCHE_WARDEN_BUILD_IMPORT_H

#include "warden/db/catalog.h"

struct warden;
typedef void import_fn(void *arg, int result, struct template *t, struct build *b, const struct err *err);

struct import_params {
  struct str team, ref, image; /* image: a file's path or a registry's name, see source.h */
  import_fn *done;             /* once, later, on the loop; not called when template_import fails */
  void *arg;
};

int template_import(struct warden *w, const struct import_params *p, struct err *err);

#endif
