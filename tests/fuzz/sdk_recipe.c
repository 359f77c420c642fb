/* SPDX-License-Identifier: Apache-2.0 */
/* sdk_recipe.c - Dockerfiles as libcloche reads them. What was taken has a base and only steps that it knows. */
#include "must.h"

#include <stdlib.h>
#include <string.h>
#include "internal.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
  char *text = malloc(size + 1);
  MUST(text != NULL);
  memcpy(text, data, size);
  text[size] = 0;
  struct cloche_recipe *recipe = cloche_recipe_new();
  struct cloche_error error = {0};
  if (cloche_recipe_dockerfile(recipe, text, &error) == CLOCHE_OK) {
    MUST(recipe->image != NULL);
    for (const struct step *s = recipe->steps; s; s = s->next)
      MUST(s->arg_count >= 1 && s->arg_count <= 4);
  } else {
    MUST(error.code == CLOCHE_EINVAL && error.message);
  }
  cloche_error_clear(&error);
  cloche_recipe_free(recipe);
  free(text);
  return 0;
}
