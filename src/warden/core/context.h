/* SPDX-License-Identifier: Apache-2.0 */
/* context.h - what modules outside the core may know of the warden: the constants of this run, the store and the
 * catalogue. They do not see struct warden itself (warden_state.h). */
#ifndef CLOCHE_WARDEN_CORE_CONTEXT_H
#define CLOCHE_WARDEN_CORE_CONTEXT_H

#include "warden/core/warden_config.h"
#include "warden/db/catalog.h"
#include "warden/db/store.h"
#include "wire/wire.h"
#include <uv.h>

struct warden;
struct box_reading;
struct builder;
struct webhooks;
struct volume_content;
struct login_codes;
struct secrets;

const struct warden_config *warden_config(const struct warden *w);
struct catalog *warden_catalog(const struct warden *w);
struct store *warden_store(const struct warden *w);
uv_loop_t *warden_loop(const struct warden *w);
const char *warden_instance(const struct warden *w); /* names all host objects */
const char *warden_secret(const struct warden *w);   /* tokens are HMACs under it */
const char *warden_runtime(const struct warden *w);  /* hash of the staged runtime layer: LAYER_ID_SIZE bytes */
bool warden_stopping(const struct warden *w);
void warden_metered_others(const struct warden *w, struct box_reading *out); /* boxes without counters of their own */
void warden_counters(const struct warden *w, struct wire_status *out);       /* those that the warden itself keeps */

/* The builder's own state, see builder.h. */
struct builder *warden_builder(const struct warden *w);
void warden_set_builder(struct warden *w, struct builder *b);
/* Those of teams, see webhooks.h. */
struct webhooks *warden_webhooks(const struct warden *w);
void warden_set_webhooks(struct warden *w, struct webhooks *h);
/* Requests about files of volumes, see volume_content.h. */
struct volume_content *warden_volume_content(const struct warden *w);
void warden_set_volume_content(struct warden *w, struct volume_content *v);
/* The same of values for requests of boxes, see secrets.h. */
struct secrets *warden_secrets(const struct warden *w);
void warden_set_secrets(struct warden *w, struct secrets *s);
/* Of the console, see login_code.h. */
struct login_codes *warden_login_codes(const struct warden *w);
void warden_set_login_codes(struct warden *w, struct login_codes *c);

#endif
