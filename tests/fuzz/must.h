/* SPDX-License-Identifier: Apache-2.0 */
/* must.h - what every fuzz target shares: a promise that ends the run when it is broken, and the entry. */
#ifndef CLOCHE_FUZZ_MUST_H
#define CLOCHE_FUZZ_MUST_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#define MUST(condition)                                                                                                \
  do {                                                                                                                 \
    if (!(condition)) {                                                                                                \
      fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #condition);                                                  \
      abort();                                                                                                         \
    }                                                                                                                  \
  } while (0)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#endif
