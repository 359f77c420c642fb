/* SPDX-License-Identifier: Apache-2.0 */
/* box_sample.c - see box_sample.h. */
#include "warden/box/box_sample.h"

#include "warden/core/box_log.h"
#include "warden/core/box_state.h"
#include "warden/core/microvm.h"
#include "warden/core/warden_state.h"
#include "warden/core/worker_pool.h"
#include <time.h>

struct box_sampler {
  uv_work_t work;
  struct warden *warden;
  size_t n;
  struct sample_of {
    char id[BOX_ID_SIZE], name[HOST_NAME_SIZE], dir[DATA_DIR_SIZE];
    bool guest;
    struct proc_id init; /* of a box with a link whose bytes are wanted; else pid 0 */
    int result;
    uint64_t cost_usec; /* of reading them */
    struct jail_stats stats;
    struct box_reading net;
  } of[];
};

static uint64_t thread_cpu_usec(void)
{
  struct timespec t = {0};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return (uint64_t)t.tv_sec * 1000000 + (uint64_t)t.tv_nsec / 1000;
}

/* A box whose processes all wait uses no processor at all; what it costs then is being looked after, which a virtual
 * machine would do within and count as its own. It is added to the box's figure. */
static void sampling_work(uv_work_t *work)
{
  struct box_sampler *s = work->data;
  for (size_t i = 0; i < s->n; i++) {
    uint64_t before = thread_cpu_usec();
    s->of[i].result = jail_stat(s->warden->instance, s->of[i].name, s->of[i].dir, &s->of[i].stats, NULL);
    if (s->of[i].guest)
      s->of[i].stats.disk_used = microvm_disk_used(s->of[i].dir);
    if (s->of[i].init.pid)
      box_meter_net(s->of[i].init, &s->of[i].net);
    s->of[i].cost_usec = MAX(thread_cpu_usec() - before, (uint64_t)1);
  }
}

static void sampling_done(uv_work_t *work, int status)
{
  struct box_sampler *s = work->data;
  int64_t wall = clock_wall_us(), mono = clock_mono_us();
  for (size_t i = 0; i < s->n; i++) {
    struct box *b = map_get(&s->warden->boxes, str_of(s->of[i].id));
    const struct jail_stats *st = &s->of[i].stats;
    if (!b || s->of[i].result)
      continue;
    boxlog_look(b);
    b->usage.care_usec += s->of[i].cost_usec;
    usage_add(&b->usage, mono, wall - b->row.started_us, st->cpu_usec + b->usage.care_usec,
              &(struct wire_sample){.wall_us = wall,
                                    .cpus = b->row.cpus,
                                    .mem_used = st->memory_used,
                                    .mem_cache = st->memory_cache,
                                    .mem_total = (uint64_t)b->row.memory_mb << 20,
                                    .disk_used = st->disk_used,
                                    .disk_total = (uint64_t)b->row.disk_mb << 20});
    if (s->warden->config->metrics_boxes_max)
      box_meter_add(&s->warden->meters, &b->meter, s->warden->config->metrics_boxes_max,
                    &(struct box_reading){st->cpu_usec, s->of[i].net.net_in, s->of[i].net.net_out});
  }
  s->warden->sampler = NULL;
  free(s);
}

void box_sample_all(struct warden *w)
{
  if (w->sampler || !w->boxes.n)
    return;
  struct box_sampler *s = xcalloc(1, sizeof(*s) + w->boxes.n * sizeof(s->of[0]));
  void *value;
  for (size_t i = 0; map_next(&w->boxes, &i, NULL, &value);) {
    struct box *b = value;
    if (b->row.state != BOX_RUNNING)
      continue;
    struct sample_of *of = &s->of[s->n++];
    memcpy(of->id, b->row.id, sizeof(of->id));
    memcpy(of->name, b->name, sizeof(of->name));
    memcpy(of->dir, b->dir, sizeof(of->dir));
    of->guest = b->row.flags & BOX_MICROVM;
    if (w->config->metrics_boxes_max && (b->row.flags & BOX_LINKED))
      of->init = b->jail.init;
  }
  s->warden = w;
  s->work.data = s;
  w->sampler = s;
  worker_pool_queue(w, "", &s->work, sampling_work, sampling_done);
}
