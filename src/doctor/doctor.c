/* SPDX-License-Identifier: Apache-2.0 */
/* doctor.c - see doctor.h: gathers facts, checks and capacity, and writes them down. */
#include "doctor/doctor.h"
#include "doctor/host_facts.h"
#include "doctor/surroundings.h"

#include <stdio.h>
#include <sys/resource.h>

#define RUNNING_MEMORY (1024ull << 20) /* of a default template's box */
#define ID_RANGES      32768u          /* that a warden gives out at most (ID_SLOTS) */

void doctor_examine(const struct doctor_place *place, struct doctor_report *out)
{
  *out = (struct doctor_report){0};
  host_facts(place->data, &out->host);
  out->n = jail_doctor(&(struct jail_place){.data = place->data,
                                            .criu = place->criu,
                                            .runtime = place->runtime,
                                            .microvm = place->microvm,
                                            .microvm_wanted = place->microvm_wanted},
                       out->checks);
  _Static_assert(JAIL_CHECKS_MAX + SURROUNDINGS_MAX <= DOCTOR_CHECKS_MAX, "room for every check");
  out->n += surroundings_examine(
      &(struct surroundings_place){.data = place->data, .net_pool = place->net_pool, .internet = place->internet},
      out->checks + out->n);
  const struct doctor_host *h = &out->host;
  uint64_t reserve = MIN(place->reserve_mb << 20, h->disk / 10);
  uint64_t kept = h->inodes / 10;
  struct rlimit files = {0};
  getrlimit(RLIMIT_NOFILE, &files);
  capacity_of(
      &(struct capacity_input){.memory = h->memory_available,
                               .disk = h->disk_available - MIN(reserve, h->disk_available),
                               .inodes = h->inodes ? h->inodes_available - MIN(kept, h->inodes_available) : UINT64_MAX,
                               .processes = host_processes_left(),
                               .open_files = files.rlim_max,
                               .ids = MIN((UINT32_MAX - place->id_base) >> 16, ID_RANGES),
                               .boxes_max = place->boxes_max,
                               .running_memory = RUNNING_MEMORY},
      &out->capacity);
}

enum jail_health doctor_health(const struct doctor_report *r)
{
  enum jail_health worst = JAIL_FINE;
  for (size_t i = 0; i < r->n; i++)
    worst = MAX(worst, r->checks[i].health);
  return worst;
}

static const char *word(enum jail_health h)
{
  static const char *const words[] = {[JAIL_FINE] = "ok", [JAIL_WORSE] = "less", [JAIL_BROKEN] = "no"};
  return words[h];
}

/* ---- JSON ---- */

static void put_text(struct jw *w, const char *key, const char *text)
{
  jw_key(w, key);
  jw_z(w, text);
}

static void put_number(struct jw *w, const char *key, uint64_t n)
{
  jw_key(w, key);
  jw_uint(w, n);
}

static void put_host(struct jw *w, const struct doctor_host *h)
{
  jw_key(w, "host");
  jw_open(w, '{');
  put_text(w, "kernel", h->kernel);
  put_text(w, "system", h->system);
  put_text(w, "architecture", h->architecture);
  put_number(w, "cpus", h->cpus);
  put_number(w, "memoryMB", h->memory >> 20);
  put_number(w, "memoryAvailableMB", h->memory_available >> 20);
  put_text(w, "controlGroups", h->cgroups);
  put_text(w, "filesystem", h->filesystem);
  put_number(w, "diskMB", h->disk >> 20);
  put_number(w, "diskAvailableMB", h->disk_available >> 20);
  put_number(w, "inodes", h->inodes);
  put_number(w, "inodesAvailable", h->inodes_available);
  jw_close(w, '}');
}

static void put_check(struct jw *w, const struct jail_check *c)
{
  jw_open(w, '{');
  put_text(w, "id", c->id);
  put_text(w, "name", c->name);
  put_text(w, "health", word(c->health));
  put_text(w, "detail", c->detail);
  put_text(w, "remedy", c->remedy);
  jw_close(w, '}');
}

static void put_capacity(struct jw *w, const struct capacity *c)
{
  jw_key(w, "capacity");
  jw_open(w, '{');
  put_number(w, "idle", c->idle);
  put_number(w, "running", c->running);
  put_text(w, "idleBound", c->idle_bound);
  put_text(w, "runningBound", c->running_bound);
  jw_key(w, "bounds");
  jw_open(w, '[');
  for (size_t i = 0; i < c->n; i++) {
    const struct capacity_bound *b = &c->bounds[i];
    jw_open(w, '{');
    put_text(w, "resource", b->resource);
    put_number(w, "available", b->available);
    put_text(w, "unit", b->unit);
    put_number(w, "idleEach", b->idle_each);
    put_number(w, "runningEach", b->running_each);
    put_number(w, "idle", b->idle);
    put_number(w, "running", b->running);
    put_text(w, "remedy", b->remedy);
    jw_close(w, '}');
  }
  jw_close(w, ']');
  jw_close(w, '}');
}

void doctor_put_json(const struct doctor_report *r, struct buf *out)
{
  struct jw w = JW(out);
  jw_open(&w, '{');
  put_number(&w, "version", DOCTOR_VERSION);
  put_text(&w, "health", word(doctor_health(r)));
  put_host(&w, &r->host);
  jw_key(&w, "checks");
  jw_open(&w, '[');
  for (size_t i = 0; i < r->n; i++)
    put_check(&w, &r->checks[i]);
  jw_close(&w, ']');
  put_capacity(&w, &r->capacity);
  jw_close(&w, '}');
}

/* ---- lines ---- */

void doctor_print(const struct doctor_report *r)
{
  static const char *const words[] = {[JAIL_FINE] = "ok", [JAIL_WORSE] = "less", [JAIL_BROKEN] = "NO"};
  const struct doctor_host *h = &r->host;
  const struct capacity *c = &r->capacity;
  printf("      %-18s %s, Linux %s, %u processors, %llu MiB\n", "machine", h->system, h->kernel, h->cpus,
         (unsigned long long)(h->memory >> 20));
  for (size_t i = 0; i < r->n; i++) {
    printf("%-5s %-18s %s\n", words[r->checks[i].health], r->checks[i].name, r->checks[i].detail);
    if (r->checks[i].remedy[0])
      printf("      %-18s -> %s\n", "", r->checks[i].remedy);
  }
  printf("      %-18s about %llu idle boxes (bound by %s), %llu running (bound by %s)\n", "capacity",
         (unsigned long long)c->idle, c->idle_bound, (unsigned long long)c->running, c->running_bound);
}
