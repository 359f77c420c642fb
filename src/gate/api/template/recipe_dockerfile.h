/* SPDX-License-Identifier: Apache-2.0 */
/* recipe_dockerfile.h - a client's Dockerfile as the warden takes it, for clients of before 2.1. Pure. */
#ifndef CLOCHE_RECIPE_DOCKERFILE_H
#define CLOCHE_RECIPE_DOCKERFILE_H

#include "gate/api/template/recipe_json.h"

#define DOCKERFILE_BODY_MAX RECIPE_MAX /* bytes: what it says must fit into a recipe */

/* The fields `dockerfile`, `startCmd` and `readyCmd` of a body. One stage, without files of the client's. Adds fields
 * that recipe_read understands; -EINVAL with words for the client, which name the line. */
int recipe_from_dockerfile(const struct json *body, struct buf *out, struct err *err);

#endif
