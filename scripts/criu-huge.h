/* criu-huge.h - what scripts/criu adds to criu: large stretches of memory come back in huge pages.
 *
 * A restored process reads its memory from the image into fresh mappings, and each page of 4 KiB is a fault: 26 to 34 ms
 * of processor time for 40 MB, 9 with pages of 2 MiB. So before a long stretch of private memory is read, its place is
 * made of huge pages, where they can be had. Nothing is left of it in the mapping's own settings. Every page of the
 * stretch is read anyway, so no memory is taken that the process had not. */
#ifndef CLOCHE_CRIU_HUGE_H
#define CLOCHE_CRIU_HUGE_H

#define HUGE_PAGE     (2ul << 20)
#define HUGE_LEAST    (4ul << 20) /* shorter stretches are not worth the call */
#define HUGE_COLLAPSE 25          /* MADV_COLLAPSE */

static void cloche_huge(struct task_restore_args *args, const struct iovec *iov)
{
  unsigned long base = (unsigned long)iov->iov_base, end = base + iov->iov_len;
  unsigned long first = (base + HUGE_PAGE - 1) & ~(HUGE_PAGE - 1), last = end & ~(HUGE_PAGE - 1);
  unsigned int i;
  if (last < first + HUGE_LEAST)
    return;
  for (i = 0; i < args->vmas_n; i++)
    if (args->vmas[i].start <= base && end <= args->vmas[i].end)
      break;
  if (i == args->vmas_n || !vma_entry_is(args->vmas + i, VMA_ANON_PRIVATE))
    return;
  for (unsigned long at = first; at < last; at += HUGE_PAGE) /* an empty place can't be collapsed */
    *(volatile char *)at = 0;
  sys_madvise(first, last - first, HUGE_COLLAPSE);
}

#endif
