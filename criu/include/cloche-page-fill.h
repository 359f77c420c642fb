/* SPDX-License-Identifier: GPL-2.0-only */
/* cloche-page-fill.h - what scripts/criu adds to criu's restorer: long runs of memory without a page fault each.
 *
 * A read into fresh memory takes one fault per page, clears the page and copies into it. The kernel can also be handed
 * whole ranges to fill (userfaultfd's copy): a page is then allocated and copied, and nothing else, in about half the
 * time. Where it refuses, for whatever reason, criu reads as it always did. */
#ifndef CLOCHE_CRIU_PAGES_H
#define CLOCHE_CRIU_PAGES_H

#define CLOCHE_RUN       (128ul << 10) /* bytes from which on a run is worth the calls around it */
#define CLOCHE_USER_ONLY 1             /* of userfaultfd: what a user without rights may have */

static int cloche_uffd = -1; /* -2: not to be had */

static inline int cloche_is_run(const struct iovec *v)
{
  return v->iov_len >= CLOCHE_RUN && !((v->iov_len | (unsigned long)v->iov_base) % PAGE_SIZE);
}

static inline int cloche_pages_open(void)
{
  struct uffdio_api api = {.api = UFFD_API};
  if (cloche_uffd == -1) {
    cloche_uffd = sys_userfaultfd(O_CLOEXEC | CLOCHE_USER_ONLY);
    if (cloche_uffd >= 0 && sys_ioctl(cloche_uffd, UFFDIO_API, (unsigned long)&api)) {
      sys_close(cloche_uffd);
      cloche_uffd = -2;
    }
  }
  return cloche_uffd < 0 ? -1 : 0;
}

static inline void cloche_pages_close(void)
{
  if (cloche_uffd >= 0)
    sys_close(cloche_uffd);
  cloche_uffd = -1;
}

static inline unsigned long cloche_copy(unsigned long to, unsigned long from, unsigned long n)
{
  unsigned long done = 0;
  struct uffdio_register all = {.range = {.start = to, .len = n}, .mode = UFFDIO_REGISTER_MODE_MISSING};
  if (sys_ioctl(cloche_uffd, UFFDIO_REGISTER, (unsigned long)&all))
    return 0;
  while (done < n) {
    struct uffdio_copy part = {.dst = to + done, .src = from + done, .len = n - done};
    sys_ioctl(cloche_uffd, UFFDIO_COPY, (unsigned long)&part);
    if (part.copy <= 0)
      break;
    done += part.copy;
  }
  sys_ioctl(cloche_uffd, UFFDIO_UNREGISTER, (unsigned long)&all.range);
  return done;
}

/* How much of the run was filled; 0: read it. */
static inline long cloche_fill(int fd, const struct iovec *v, unsigned long off)
{
  unsigned long from, done;
  if (off % PAGE_SIZE || cloche_pages_open())
    return 0;
  from = sys_mmap(NULL, v->iov_len, PROT_READ, MAP_PRIVATE, fd, off);
  if (from > (unsigned long)-4096)
    return 0;
  done = cloche_copy((unsigned long)v->iov_base, from, v->iov_len);
  sys_munmap((void *)from, v->iov_len);
  return done;
}

/* How many to read before the next run that is to be filled. */
static inline int cloche_until_run(const struct iovec *v, int n)
{
  int i = 1;
  while (i < n && !cloche_is_run(&v[i]))
    i++;
  return i;
}

#endif
