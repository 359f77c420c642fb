/* SPDX-License-Identifier: Apache-2.0 */
/* box_spec.c - see box_spec.h. */
#include "warden/core/box_spec.h"

#include "warden/core/egress.h"
#include "warden/core/microvm.h"
#include "warden/core/volume_mounts.h"
#include "warden/core/warden_state.h"
#include "wire/wire.h"

#define HOSTNAME "e2b.local"

static const char *const *environment(const struct warden *w, struct arena *a, const struct build *b)
{
  const char **env = arena_alloc(a, 6 * sizeof(*env));
  env[0] = "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";
  env[1] = arena_fmt(a, "CLOCHE_MEMORY=%llu", (unsigned long long)b->row.memory_mb << 20);
  env[2] = arena_fmt(a, "CLOCHE_CPUS=%u", b->row.cpus);
  env[3] = arena_fmt(a, "CLOCHE_DISK=%llu", (unsigned long long)b->row.disk_mb << 20);
  env[4] = arena_fmt(a, "CLOCHE_LOG_BYTES=%u", w->config->log_bytes);
  return env;
}

void box_jail_spec(struct warden *w, const struct box_spec *box_spec, struct arena *a, struct jail_spec *spec,
                   struct jail_net *net)
{
  static const char *const argv[] = {JAIL_RUNTIME "/agent", NULL};
  const struct build *build = box_spec->build;
  *spec = (struct jail_spec){
      .instance = w->instance,
      .id = box_spec->name,
      .dir = box_spec->dir,
      .lowers = build_layers(a, build, w->config->data, box_spec->runtime),
      .id_base = w->config->id_base + box_spec->slot * JAIL_IDS,
      .shifted = arena_fmt(a, "%s/shifted", w->config->data),
      .runtime = arena_fmt(a, "%s/runtime/%s" JAIL_RUNTIME, w->config->data, box_spec->runtime),
      .hostname = HOSTNAME,
      .argv = argv,
      .env = environment(w, a, build),
      .boot_fd = -1,
      .limits = {.cpus = build->row.cpus,
                 .memory = (uint64_t)build->row.memory_mb << 20,
                 .disk = (uint64_t)build->row.disk_mb << 20,
                 .pids = w->config->pids_max,
                 .open_files = w->config->open_files},
  };
  volume_mounts_spec(w, box_spec->mounts, a, spec);
  if (egress_on(w)) /* also for a box that gets its link later */
    spec->nameserver = egress_nameserver(w, a);
  if (egress_wanted(w, box_spec->flags, box_spec->allow)) {
    egress_plan(w, box_spec->slot, box_spec->flags, box_spec->allow, box_spec->deny, box_spec->egress, a, net);
    spec->net = net;
  }
  if (box_spec->flags & BOX_MICROVM)
    microvm_spec(w, box_spec->slot, a, spec);
}

void box_ns_spec(struct warden *w, const struct ns_kind *kind, const char *name, unsigned slot, struct arena *a,
                 struct jail_spec *spec, struct jail_net *net)
{
  *spec = (struct jail_spec){
      .instance = w->instance,
      .id = name,
      .id_base = w->config->id_base + slot * JAIL_IDS,
      .hostname = HOSTNAME,
      .boot_fd = -1,
      .owner = kind->owner,
      .limits = {.cpus = kind->cpus, .memory = (uint64_t)kind->memory_mb << 20, .pids = w->config->pids_max},
  };
  if (egress_wanted(w, BOX_INTERNET, STR_NONE)) {
    egress_plan(w, slot, BOX_INTERNET, STR_NONE, STR_NONE, NULL, a, net);
    spec->net = net;
  }
}
