/* SPDX-License-Identifier: Apache-2.0 */
/* suggest.c - the name that a mistyped word probably meant, by edit distance. */
#include "cli/remote/suggest.h"

static size_t distance(const char *a, const char *b)
{
  size_t row[64], n = strlen(b);
  if (n >= ARRAY_LEN(row))
    return SIZE_MAX;
  for (size_t j = 0; j <= n; j++)
    row[j] = j;
  for (size_t i = 1; *a; a++, i++) {
    size_t diagonal = row[0];
    row[0] = i;
    for (size_t j = 1; j <= n; j++) {
      size_t change = diagonal + (*a != b[j - 1]);
      size_t shift = MIN(row[j], row[j - 1]) + 1;
      diagonal = row[j];
      row[j] = MIN(change, shift);
    }
  }
  return row[n];
}

const char *did_you_mean(const char *word, const char *const *names, size_t n)
{
  const char *best = NULL;
  size_t least = 3;
  for (size_t i = 0; i < n; i++) {
    size_t d = distance(word, names[i]);
    if (d < least) {
      least = d;
      best = names[i];
    }
  }
  return best;
}
