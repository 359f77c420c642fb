/* SPDX-License-Identifier: Apache-2.0 */
/* cpu_share.h - which processors a box is bound to.
 *
 * A box with fewer processors than the host is bound to some, because that is what programs count. It gets those that
 * the fewest boxes are bound to, so that nobody can gather boxes beside a neighbour's while other processors are free.
 * Each box is worth one processor's time on each that it is bound to, so boxes are what is counted. Safe from threads.
 */
#ifndef CLOCHE_CPU_SHARE_H
#define CLOCHE_CPU_SHARE_H

#include "base/base.h"
#include <sched.h>

#define CPU_LIST_TEXT 4096 /* every other one of CPU_SETSIZE processors fits */

/* Chooses so many (0: all) of those that the daemon may use, counts them as this box's and writes their list. */
int cpu_share_take(const char *instance, const char *id, unsigned n, char list[CPU_LIST_TEXT]);
/* Counts those of a box that was there before this process. */
void cpu_share_adopt(const char *instance, const char *id, const char *list);
void cpu_share_release(const char *instance, const char *id); /* the box is gone; also of one that was never counted */

/* The n of `allowed` with the least load; among equals from `first` on, going round. */
void cpu_share_pick(const unsigned load[CPU_SETSIZE], const cpu_set_t *allowed, unsigned n, unsigned first,
                    cpu_set_t *out);
/* Lists as the kernel has them: "0-3,8". */
int cpu_list_write(const cpu_set_t *set, char *list, size_t size); /* -E2BIG */
int cpu_list_read(const char *list, cpu_set_t *set);               /* -EINVAL */

#endif
