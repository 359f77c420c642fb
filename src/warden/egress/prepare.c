/* SPDX-License-Identifier: Apache-2.0 */
/* prepare.c - see prepare.h. Names are looked up by a process without rights: what a name server answers is not for
 * this one to read. The gateway looks again at each connection. */
#include "warden/egress/prepare.h"

#include "jail/net/never.h"
#include "net/cert.h"
#include "warden/core/context.h"
#include "warden/core/helper_proc.h"
#include "warden/core/worker_pool.h"
#include "wire/boot_packet.h"
#include <arpa/inet.h>
#include <stdio.h>

#define ANSWER_MAX (64u << 10)

struct preparation {
  uv_work_t work;
  struct box_egress *egress;
  bool known;
  uint32_t uid;
  unsigned seconds;
  egress_prepared_fn *done;
  void *arg;
  int result;
  struct err err;
};

/* ---- the proxy's name ---- */

int egress_addresses_check(struct str answer, struct str host, struct err *err)
{
  size_t found = 0;
  while (answer.n) {
    struct str line, word, rest;
    char text[INET_ADDRSTRLEN];
    struct in_addr a;
    str_cut(answer, '\n', &line, &answer);
    str_cut(line, ' ', &word, &rest);
    if (str_copyz(word, text, sizeof(text)) || inet_pton(AF_INET, text, &a) != 1)
      continue;
    found++;
    if (never_reached(ntohl(a.s_addr)))
      return err_set(err, -EINVAL,
                     "'network.egressProxy.address': '" STR_FMT "' leads to %s, a private or local address",
                     STR_ARG(host), text);
  }
  return found
             ? 0
             : err_set(err, -EINVAL, "'network.egressProxy.address': '" STR_FMT "' has no IPv4 address", STR_ARG(host));
}

static int look_up(const struct preparation *p, struct str host, struct err *err)
{
  char name[256];
  struct in_addr a;
  cleanup_buf struct buf answer = BUF_INIT(ANSWER_MAX);
  if (str_copyz(host, name, sizeof(name)))
    return err_set(err, -EINVAL, "the proxy's name is too long");
  if (inet_pton(AF_INET, name, &a) == 1)
    return egress_addresses_check(host, host, err);
  const char *argv[] = {"getent", "ahostsv4", name, NULL};
  struct helper_proc c = {
      .argv = argv, .uid = p->uid, .work = -1, .source = -1, .seconds = p->seconds, .answer = &answer};
  struct err why = ERR_NONE;
  if (helper_proc_run(&c, &why))
    return err_set(err, -EINVAL, "'network.egressProxy.address': '%.200s' can't be resolved", name);
  return egress_addresses_check(buf_str(&answer), host, err);
}

static int check_proxy(const struct preparation *p, struct err *err)
{
  cleanup_arena struct arena a = ARENA_INIT((size_t)8 << 20);
  struct egress_policy policy;
  int r = egress_policy_read(&a, buf_str(&p->egress->settings), &policy, err);
  return r ? r : look_up(p, policy.proxy.host, err);
}

/* ---- the authority ---- */

static int make_authority(struct box_egress *e, struct err *err)
{
  cleanup_cert struct cert c = CERT_INIT;
  int r = cert_authority(BOOT_AUTHORITY_NAME, &c, err);
  if (r)
    return err_set(err, -EIO, "no certificate authority for the sandbox: %.300s", err->msg);
  buf_adds(&e->cert, buf_str(&c.cert));
  buf_adds(&e->key, buf_str(&c.key));
  return buf_failed(&e->cert) || buf_failed(&e->key) ? err_set(err, -ENOMEM, "no room for an authority") : 0;
}

/* ---- on a worker ---- */

static void prepare_work(uv_work_t *work)
{
  struct preparation *p = work->data;
  struct box_egress *e = p->egress;
  p->result = e->proxy && !p->known ? check_proxy(p, &p->err) : 0;
  if (!p->result && e->rules && !e->key.n)
    p->result = make_authority(e, &p->err);
}

static void prepare_done(uv_work_t *work, int status)
{
  struct preparation *p = work->data;
  p->done(p->arg, p->result, &p->err);
  free(p);
}

void egress_prepare(struct warden *w, const char *team, struct box_egress *e, bool known, egress_prepared_fn *done,
                    void *arg)
{
  struct preparation *p = xcalloc(1, sizeof(*p));
  p->egress = e;
  p->known = known;
  p->uid = warden_config(w)->source.uid;
  p->seconds = warden_config(w)->egress_s;
  p->done = done;
  p->arg = arg;
  p->work.data = p;
  worker_pool_queue(w, team, &p->work, prepare_work, prepare_done);
}
