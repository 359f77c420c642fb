/* SPDX-License-Identifier: Apache-2.0 */
/* agent.h - the agent's state, and where a reader starts.
 *
 * cloche-agent is pid 1 of a box. agent_main.c reads the boot packet (agent_boot.c), opens the envd API on 49983
 * (router.c sends each request to process_rpc.c, fs_rpc.c, watch_rpc.c, upload.c, download.c, compose.c, init.c,
 * box_metrics.c) and the code-interpreter API on 49999 (interp.h). One loop, one thread; work that may block on a disk
 * goes to thread_pool.c, whose threads come and go with it.
 *
 * Rooms: envd/ (start at router.h), interpreter/ (interp.h), build/ (build_exec.h). */
#ifndef CLOCHE_AGENT_H
#define CLOCHE_AGENT_H

#include "agent/env.h"
#include "base/base.h"
#include <uv.h>

#define AGENT_VERSION "0.6.13" /* the envd generation whose behaviour this is */
#define AGENT_PORT    49983
#define AGENT_PATH    "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

struct agent {
  uv_loop_t *loop;
  char *box_id, *template_id, *build_id; /* never NULL; "" when unknown */
  char *secret;                          /* proves the control plane; NULL = nobody can */
  char *token;                           /* X-Access-Token that callers must show; NULL = all may call */
  char *default_user, *default_workdir;  /* workdir may be NULL */
  struct env internal;                   /* E2B_SANDBOX, E2B_SANDBOX_ID, E2B_TEMPLATE_ID: nothing changes them */
  struct env template_env;               /* ENV of the template's build */
  struct env trust_env;                  /* where the authority of its egress is found; see trust.h */
  struct env init_env;                   /* envVars of the last POST /init */
  int64_t init_us;                       /* timestamp of the newest accepted /init, 0 = none */
  unsigned env_generation;               /* grows whenever agent_envs() may answer differently */
  unsigned renewals;          /* how often it became another box: kernels draw new random numbers after each */
  void (*renewed)(void *arg); /* called then; may be NULL */
  void *renewed_arg;
};

/* The default variables of every process: template, trust, then /init, then internal (later wins). *out is added to. */
void agent_envs(const struct agent *a, struct env *out);

/* True when no token is set or `given` equals it (constant time). */
bool agent_token_ok(const struct agent *a, struct str given);

/* The user name of an Authorization header: 1 = found (in *out), 0 = none given or not Basic. */
int agent_basic_user(struct str authorization, struct buf *out);

#endif
