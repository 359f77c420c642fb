/* SPDX-License-Identifier: Apache-2.0 */
/* arena.c - Python's small objects in one piece of memory.
 *
 * Python asks the system for its objects' memory a megabyte at a time and gets pieces here and there, none of which
 * holds a whole huge page. Here they come one after the other out of one aligned range, so that the loaded heap of a
 * nursery fits into huge pages (heap.py) and a fork copies a page table entry per two megabytes instead of 512. What is
 * given back is emptied and used again; past the range, pieces come from the system as ever.
 *
 * Python calls under its own lock. No C library, so that it fits every template's Python; x86-64 only, like
 * enter_box.c. */
#include <stddef.h>
#include <stdint.h>

#if !defined(__x86_64__)
#error "system calls are written for x86-64"
#endif

enum { SYS_MMAP = 9, SYS_MUNMAP = 11, SYS_MADVISE = 28 };
enum { READ_WRITE = 3, PRIVATE_NOBODYS_UNRESERVED = 0x4022, DROP = 4 };
#define PIECE  ((uintptr_t)1 << 20)
#define PIECES 512
#define HUGE   ((uintptr_t)2 << 20)

static struct {
  uintptr_t base; /* 0 = not there yet */
  uint64_t used[PIECES / 64];
} range;

static long call(long number, uintptr_t a, size_t b, long c, long d, long e)
{
  long result;
  register long r10 __asm__("r10") = d;
  register long r8 __asm__("r8") = e;
  register long r9 __asm__("r9") = 0;
  __asm__ volatile("syscall"
                   : "=a"(result)
                   : "a"(number), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9)
                   : "rcx", "r11", "memory");
  return result;
}

static uintptr_t from_system(size_t size)
{
  long r = call(SYS_MMAP, 0, size, READ_WRITE, PRIVATE_NOBODYS_UNRESERVED, -1);
  return r < 0 && r > -4096 ? 0 : (uintptr_t)r;
}

static uintptr_t from_range(void)
{
  for (size_t word = 0; word < PIECES / 64; word++)
    if (~range.used[word]) {
      unsigned bit = (unsigned)__builtin_ctzll(~range.used[word]);
      range.used[word] |= (uint64_t)1 << bit;
      return range.base + (word * 64 + bit) * PIECE;
    }
  return 0;
}

void *arena_take(void *context, size_t size)
{
  (void)context;
  if (!range.base) {
    uintptr_t at = from_system(PIECES * PIECE + HUGE);
    range.base = (at + HUGE - 1) & ~(HUGE - 1);
  }
  uintptr_t at = range.base && size == PIECE ? from_range() : 0;
  return (void *)(at ? at : from_system(size));
}

void arena_give(void *context, void *piece, size_t size)
{
  (void)context;
  uintptr_t at = (uintptr_t)piece;
  if (at < range.base || at >= range.base + PIECES * PIECE) {
    call(SYS_MUNMAP, at, size, 0, 0, 0);
    return;
  }
  size_t number = (at - range.base) / PIECE;
  call(SYS_MADVISE, at, size, DROP, 0, 0);
  range.used[number / 64] &= ~((uint64_t)1 << (number % 64));
}
