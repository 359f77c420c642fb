/* SPDX-License-Identifier: Apache-2.0 */
/* bench.h - `cloche bench`: what a client sees of any E2B-compatible server, in numbers. bench.c has options, samples
 * and the table; bench_box.c speaks to boxes as stock clients do; bench_rows.c and bench_loads.c measure. */
#ifndef CLOCHE_CLI_BENCH_BENCH_H
#define CLOCHE_CLI_BENCH_BENCH_H

#include "cli/bench/bench_http.h"
#include "wire/sizes.h"

/* Samples of one row. */
struct series {
  const char *name, *title, *unit;
  double goal; /* of the median, or of the one number; 0 = none is set */
  bool more;   /* more is better */
  bool worst;  /* the goal is for the largest sample */
  VEC(double) samples;
  char note[160]; /* why there is none */
};

struct bench {
  struct origin api, edge;
  const char *key, *template, *domain, *only, *json;
  double scale; /* of the numbers of samples */
  unsigned pause_ms;
  unsigned settle_s; /* longest wait for a quiet machine before a measurement; 0 = none */
};

/* A connection to the API and one to the edge, for one thread. */
struct client {
  const struct bench *bench;
  struct bench_http *api, *edge;
  struct call call;
};
void client_open(struct client *c, const struct bench *b);
void client_close(struct client *c);
#define cleanup_client __attribute__((cleanup(client_close)))

struct bench_box {
  char id[BOX_ID_SIZE], token[256], domain[200];
  struct origin origin;    /* where it is reached by host name */
  struct bench_http *line; /* to it alone, in that case */
};
/* Each leaves the exchange in c->call and returns 0 or negative; a status that is not a success is an error. */
int bench_box_create(struct client *c, struct bench_box *g, struct err *err);
#define BENCH_VOLUME "/mnt/volume" /* where a box has the volume of that name; NULL: none */
int bench_box_create_with(struct client *c, struct bench_box *g, const char *volume, struct err *err);
struct bench_volume {
  char id[UUID_SIZE], token[256];
};
int bench_volume_create(struct client *c, const char *name, struct bench_volume *v, struct err *err);
int bench_volume_remove(struct client *c, const struct bench_volume *v, struct err *err);
/* One file of it by the content API: written, or read where the body is empty; the bytes read are counted only. */
int bench_volume_file(struct client *c, const struct bench_volume *v, struct str body, struct err *err);
int bench_volume_unlink(struct client *c, const struct bench_volume *v, struct err *err);
int bench_box_kill(struct client *c, struct bench_box *g, struct err *err);
int bench_box_pause(struct client *c, struct bench_box *g, struct err *err);
int bench_box_resume(struct client *c, struct bench_box *g, struct err *err);
int bench_box_fork(struct client *c, struct bench_box *g, struct bench_box *copy, struct err *err);
/* `expect`: text that must be in the answer. context NULL: the default one. */
int bench_box_run(struct client *c, struct bench_box *g, const char *code, const char *context, const char *expect,
                  struct err *err);
int bench_box_command(struct client *c, struct bench_box *g, const char *command, const char *expect, struct err *err);
int bench_box_context(struct client *c, struct bench_box *g, char id[BOX_ID_SIZE], struct err *err);
int bench_box_context_end(struct client *c, struct bench_box *g, const char *id, struct err *err);
/* Any request to a port of the box; k->headers are added to what the edge needs. */
int bench_box_request(struct client *c, struct bench_box *g, unsigned port, struct call *k, struct err *err);
/* The head lines that lead to that port. */
int bench_box_headers(const struct bench_box *g, unsigned port, const char *more, char *out, size_t size);

#define AGENT_PORT       49983
#define INTERPRETER_PORT 49999

/* ---- rows ---- */

struct row {
  const char *name; /* what --only takes; its series begin with it */
  const char *about;
  int (*measure)(struct bench *b, struct err *err);
};
extern const struct row bench_rows[], bench_loads[];
extern const size_t bench_nrows, bench_nloads;

void sample(const char *series, double value); /* from one thread at a time */
void samples_note(const char *row, const char *why);
unsigned scaled(const struct bench *b, unsigned n);     /* at least 3 */
void space_out(const struct bench *b);                  /* the pause between spaced events */
void settle(const struct bench *b);                     /* bench_settle.c */
int connections_rate(struct bench *b, struct err *err); /* bench_connections.c */
int build_times(struct bench *b, struct err *err);      /* bench_build.c */
int trace_create(struct bench *b);

#endif
