/* SPDX-License-Identifier: Apache-2.0 */
/* crc32c.c - the Castagnoli checksum, by the processor's own instruction where it has one. It tells damage, not malice.
 */
#include "base/codec.h"
#include "base/core.h"

#include <pthread.h>

#define POLYNOMIAL 0x82f63b78u

static uint32_t table[256];
static bool has_instruction;

static void prepare(void)
{
  for (uint32_t i = 0; i < 256; i++) {
    uint32_t c = i;
    for (int k = 0; k < 8; k++)
      c = c & 1 ? c >> 1 ^ POLYNOMIAL : c >> 1;
    table[i] = c;
  }
#ifdef __x86_64__
  has_instruction = __builtin_cpu_supports("sse4.2");
#endif
}

static uint32_t by_table(uint32_t c, const unsigned char *p, size_t n)
{
  while (n--)
    c = c >> 8 ^ table[(c ^ *p++) & 255];
  return c;
}

#ifdef __x86_64__
__attribute__((target("sse4.2"))) static uint32_t by_instruction(uint32_t c, const unsigned char *p, size_t n)
{
  uint64_t wide = c, word;
  for (; n >= 8; p += 8, n -= 8) {
    memcpy(&word, p, 8);
    wide = __builtin_ia32_crc32di(wide, word);
  }
  c = (uint32_t)wide;
  while (n--)
    c = __builtin_ia32_crc32qi(c, *p++);
  return c;
}
#else
#define by_instruction by_table
#endif

uint32_t crc32c(uint32_t crc, const void *p, size_t n)
{
  static pthread_once_t once = PTHREAD_ONCE_INIT;
  pthread_once(&once, prepare);
  return ~(has_instruction ? by_instruction(~crc, p, n) : by_table(~crc, p, n));
}
