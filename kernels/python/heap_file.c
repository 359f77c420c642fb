/* SPDX-License-Identifier: Apache-2.0 */
/* heap_file.c - puts pieces of our own memory into a file and maps them from there, in place.
 *
 * Memory that comes from a file and is only read belongs to nobody: forks share it without copying page tables, and a
 * checkpoint leaves it out and finds it in the file again. What is written to is a private copy, as ever. While a piece
 * is moved nothing may write to it; so there is no C library here, only system calls, and the caller has one
 * thread. x86-64 only, like enter_box.c. */
#include <stddef.h>
#include <stdint.h>

#if !defined(__x86_64__)
#error "system calls are written for x86-64"
#endif

enum { SYS_MMAP = 9, SYS_PWRITE = 18 };
enum { READ_WRITE = 3, PRIVATE_FIXED = 0x12 };

struct piece {
  uint64_t start, bytes, offset;
};

static long call(long number, uint64_t a, uint64_t b, uint64_t c, uint64_t d, uint64_t e, uint64_t f)
{
  long result;
  register uint64_t r10 __asm__("r10") = d;
  register uint64_t r8 __asm__("r8") = e;
  register uint64_t r9 __asm__("r9") = f;
  __asm__ volatile("syscall"
                   : "=a"(result)
                   : "a"(number), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9)
                   : "rcx", "r11", "memory");
  return result;
}

static long write_out(const struct piece *p, long fd)
{
  for (uint64_t done = 0; done < p->bytes;) {
    long n = call(SYS_PWRITE, (uint64_t)fd, p->start + done, p->bytes - done, p->offset + done, 0, 0);
    if (n <= 0)
      return n ? n : -5;
    done += (uint64_t)n;
  }
  return 0;
}

/* `to` and `from` are the same file, open for writing and for reading only: a mapping remembers which. The number of
 * pieces that are mapped from it now: all, or those before the one that failed. */
long lay(const struct piece *pieces, long count, long to, long from)
{
  for (long i = 0; i < count; i++) {
    struct piece p = pieces[i];
    if (write_out(&p, to))
      return i;
    long at = call(SYS_MMAP, p.start, p.bytes, READ_WRITE, PRIVATE_FIXED, (uint64_t)from, p.offset);
    if (at < 0 && at > -4096)
      return i;
  }
  return count;
}
