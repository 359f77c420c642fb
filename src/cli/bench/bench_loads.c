/* SPDX-License-Identifier: Apache-2.0 */
/* bench_loads.c - what many clients get at once: cells of eight contexts, a hundred creates, boxes per second, requests
 * per second into one box. Threads have connections of their own, opened before the clock starts. */
#include "cli/bench/bench.h"

#include <pthread.h>
#include <stdio.h>
#include <time.h>

struct worker {
  pthread_t thread;
  struct client client;
  struct bench_box *box;
  struct load *load;
  char context[64];
  int64_t until_ns;
  uint64_t done;
  struct err err;
};

struct load {
  struct bench *bench;
  pthread_barrier_t gate;
  double seconds; /* for work that looks at the clock */
  void (*work)(struct worker *w);
};

static void *worker_main(void *arg)
{
  struct worker *w = arg;
  struct err err = ERR_NONE;
  bench_http_connect(w->client.api, &err);
  bench_http_connect(w->client.edge, &err);
  pthread_barrier_wait(&w->load->gate);
  w->until_ns = now_ns() + (int64_t)(w->load->seconds * 1e9);
  w->load->work(w);
  return NULL;
}

/* Runs `work` on n threads. Returns the seconds it took. */
static double load_run(struct load *l, struct worker *all, unsigned n)
{
  pthread_barrier_init(&l->gate, NULL, n + 1);
  for (unsigned i = 0; i < n; i++) {
    all[i].load = l;
    client_open(&all[i].client, l->bench);
    if (pthread_create(&all[i].thread, NULL, worker_main, &all[i])) {
      fputs("cloche: no thread can be started\n", stderr);
      exit(1);
    }
  }
  pthread_barrier_wait(&l->gate);
  int64_t began = now_ns();
  for (unsigned i = 0; i < n; i++)
    pthread_join(all[i].thread, NULL);
  double took = (double)(now_ns() - began) / 1e9;
  for (unsigned i = 0; i < n; i++)
    client_close(&all[i].client);
  pthread_barrier_destroy(&l->gate);
  return took;
}

static int first_error(const struct worker *all, unsigned n, struct err *err)
{
  for (unsigned i = 0; i < n; i++)
    if (all[i].err.code) {
      *err = all[i].err;
      return err->code;
    }
  return 0;
}

/* ---- eight contexts ---- */

static void cells(struct worker *w)
{
  while (now_ns() < w->until_ns && !w->err.code) {
    if (!bench_box_run(&w->client, w->box, "1+1", w->context, "\"2\"", &w->err))
      w->done++;
  }
}

#define CONTEXTS 8
static int contexts_rate(struct bench *b, struct err *err)
{
  cleanup_client struct client c;
  struct bench_box g;
  client_open(&c, b);
  int r = bench_box_create(&c, &g, err);
  for (unsigned round = 0; round < 3 && !r; round++) {
    struct worker all[CONTEXTS] = {0};
    struct load l = {.bench = b, .work = cells, .seconds = MAX(2 * b->scale, 0.5)};
    for (unsigned i = 0; i < CONTEXTS && !r; i++) {
      all[i].box = &g;
      r = bench_box_context(&c, &g, all[i].context, err);
    }
    if (r)
      break;
    double took = load_run(&l, all, CONTEXTS);
    uint64_t done = 0;
    for (unsigned i = 0; i < CONTEXTS; i++) {
      done += all[i].done;
      bench_box_context_end(&c, &g, all[i].context, NULL);
    }
    r = first_error(all, CONTEXTS, err);
    if (!r)
      sample("contexts", (double)done / took);
  }
  struct err more = ERR_NONE;
  bench_box_kill(&c, &g, &more);
  return r;
}

/* ---- a hundred at once ---- */

static void one_of_many(struct worker *w)
{
  if (!bench_box_create(&w->client, w->box, &w->err))
    bench_box_run(&w->client, w->box, "import numpy as np; int(np.arange(10).sum())", NULL, "\"45\"", &w->err);
}

#define BURST 100
static int burst_time(struct bench *b, struct err *err)
{
  int r = 0;
  for (unsigned round = 0; round < scaled(b, 3) && !r; round++) {
    static struct worker all[BURST];
    static struct bench_box boxes[BURST];
    memset(all, 0, sizeof(all));
    struct load l = {.bench = b, .work = one_of_many};
    for (unsigned i = 0; i < BURST; i++)
      all[i].box = &boxes[i];
    double took = load_run(&l, all, BURST);
    r = first_error(all, BURST, err);
    if (!r)
      sample("burst", took * 1e3);
    cleanup_client struct client c;
    client_open(&c, b);
    struct err more = ERR_NONE;
    for (unsigned i = 0; i < BURST; i++)
      bench_box_kill(&c, &boxes[i], &more);
    struct timespec rest = {.tv_sec = 2};
    nanosleep(&rest, NULL);
  }
  return r;
}

/* ---- boxes per second ---- */

static void whole_lives(struct worker *w)
{
  struct err more = ERR_NONE;
  while (now_ns() < w->until_ns && !w->err.code) {
    struct bench_box g;
    if (bench_box_create(&w->client, &g, &w->err))
      return;
    bench_box_run(&w->client, &g, "1+1", NULL, "\"2\"", &w->err);
    if (!bench_box_kill(&w->client, &g, w->err.code ? &more : &w->err))
      w->done++;
  }
}

#define LIVES 4
static int lives_rate(struct bench *b, struct err *err)
{
  struct worker all[LIVES] = {0};
  struct load l = {.bench = b, .work = whole_lives, .seconds = MAX(10 * b->scale, 2.0)};
  double took = load_run(&l, all, LIVES);
  uint64_t done = 0;
  for (unsigned i = 0; i < LIVES; i++)
    done += all[i].done;
  int r = first_error(all, LIVES, err);
  if (!r)
    sample("sustained", (double)done / took);
  return r;
}

/* ---- requests into one box ---- */

#define LINES_EACH 16
#define CLIENTS    2

/* A thread keeps many connections busy: it sends on all, then reads from all. */
static void health_many(struct worker *w)
{
  struct bench_http *lines[LINES_EACH];
  struct call calls[LINES_EACH];
  char headers[1024];
  bench_box_headers(w->box, AGENT_PORT, NULL, headers, sizeof(headers));
  for (unsigned i = 0; i < LINES_EACH; i++) {
    lines[i] = bench_http_new(&w->load->bench->edge);
    calls[i] = (struct call){.method = "GET", .path = "/health", .headers = headers};
  }
  while (now_ns() < w->until_ns && !w->err.code) {
    for (unsigned i = 0; i < LINES_EACH && !w->err.code; i++)
      bench_http_send(lines[i], &calls[i], &w->err);
    for (unsigned i = 0; i < LINES_EACH && !w->err.code; i++)
      if (!bench_http_receive(lines[i], &calls[i], &w->err) && calls[i].status == 204)
        w->done++;
  }
  for (unsigned i = 0; i < LINES_EACH; i++) {
    bench_http_free(lines[i]);
    buf_free(&calls[i].answer);
  }
}

static int health_alone(struct bench *b, struct client *c, struct bench_box *g, struct err *err)
{
  int r = 0;
  for (unsigned i = 0; i < scaled(b, 2000) && !r; i++) {
    cleanup_call struct call k = {.method = "GET", .path = "/health"};
    r = bench_box_request(c, g, AGENT_PORT, &k, err);
    if (!r && i >= 10)
      sample("http", call_ms(&k));
  }
  return r;
}

static int http_rate(struct bench *b, struct err *err)
{
  cleanup_client struct client c;
  struct bench_box g;
  client_open(&c, b);
  int r = bench_box_create(&c, &g, err);
  r = r ? r : health_alone(b, &c, &g, err);
  for (unsigned round = 0; round < 3 && !r && !g.domain[0]; round++) {
    struct worker all[CLIENTS] = {0};
    struct load l = {.bench = b, .work = health_many, .seconds = MAX(2 * b->scale, 0.5)};
    for (unsigned i = 0; i < CLIENTS; i++)
      all[i].box = &g;
    double took = load_run(&l, all, CLIENTS);
    r = first_error(all, CLIENTS, err);
    uint64_t done = 0;
    for (unsigned i = 0; i < CLIENTS; i++)
      done += all[i].done;
    if (!r)
      sample("http_rate", (double)done / took);
  }
  struct err more = ERR_NONE;
  bench_box_kill(&c, &g, &more);
  return r;
}

const struct row bench_loads[] = {
    {"contexts", "cells of eight contexts at once", contexts_rate},
    {"burst", "100 creates at once, each with a numpy cell", burst_time},
    {"sustained", "create + run + kill", lives_rate},
    {"http", "requests into one box", http_rate},
    {"connections", "5,000 open connections to a server in a box", connections_rate},
};
const size_t bench_nloads = ARRAY_LEN(bench_loads);
