/* SPDX-License-Identifier: Apache-2.0 */
/* context.c - see context.h. */
#include "warden/core/context.h"

#include "warden/core/warden_state.h"
#include "warden/db/event.h"

const struct warden_config *warden_config(const struct warden *w)
{
  return w->config;
}

struct catalog *warden_catalog(const struct warden *w)
{
  return w->catalog;
}

struct store *warden_store(const struct warden *w)
{
  return w->store;
}

uv_loop_t *warden_loop(const struct warden *w)
{
  return w->loop;
}

const char *warden_instance(const struct warden *w)
{
  return w->instance;
}

const char *warden_secret(const struct warden *w)
{
  return w->secret;
}

const char *warden_runtime(const struct warden *w)
{
  return w->runtime;
}

bool warden_stopping(const struct warden *w)
{
  return w->stopping;
}

struct builder *warden_builder(const struct warden *w)
{
  return w->builder;
}

void warden_set_builder(struct warden *w, struct builder *b)
{
  w->builder = b;
}

struct webhooks *warden_webhooks(const struct warden *w)
{
  return w->webhooks;
}

void warden_set_webhooks(struct warden *w, struct webhooks *h)
{
  w->webhooks = h;
}

struct secrets *warden_secrets(const struct warden *w)
{
  return w->secrets;
}

void warden_set_secrets(struct warden *w, struct secrets *s)
{
  w->secrets = s;
}

void warden_metered_others(const struct warden *w, struct box_reading *out)
{
  *out = w->meters.others;
}

void warden_counters(const struct warden *w, struct wire_status *out)
{
  out->started_us = w->started_us;
  out->removals = w->removals;
  out->launches = w->launches;
  out->transitions = w->transitions;
  out->launches_total = w->launches_total;
  out->launches_failed = w->launches_failed;
  out->resumes_total = w->resumes_total;
  out->pauses_total = w->pauses_total;
  out->ends_total = w->ends_total;
  out->checkpoint_ready = w->checkpoints_on;
  out->events_total = event_count(w->store);
}

struct volume_content *warden_volume_content(const struct warden *w)
{
  return w->volume_content;
}

void warden_set_volume_content(struct warden *w, struct volume_content *v)
{
  w->volume_content = v;
}

struct login_codes *warden_login_codes(const struct warden *w)
{
  return w->login_codes;
}

void warden_set_login_codes(struct warden *w, struct login_codes *c)
{
  w->login_codes = c;
}
