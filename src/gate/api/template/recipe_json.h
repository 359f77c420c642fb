/* SPDX-License-Identifier: Apache-2.0 */
/* recipe_json.h - a client's recipe as the warden takes it. Pure. */
#ifndef CLOCHE_RECIPE_JSON_H
#define CLOCHE_RECIPE_JSON_H

#include "wire/recipe.h"

/* The body of a build's start. Adds fields that recipe_read understands; -EINVAL with words for the client. */
int recipe_from_json(const struct json *body, struct buf *out, struct err *err);
/* A text of the body, where it is given. */
int recipe_put_text(const struct json *body, const char *name, enum recipe_tag tag, struct buf *out, struct err *err);
/* What was put is not longer than a recipe may be. */
int recipe_fits(const struct buf *out, struct err *err);

#endif
