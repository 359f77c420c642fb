/* SPDX-License-Identifier: Apache-2.0 */
/* handlers.h - one function for each type of request; rpc.c has the table that says who may send which. A handler
 * replies exactly once, now or later (reply.h). */
#ifndef CLOCHE_WARDEN_RPC_HANDLERS_H
#define CLOCHE_WARDEN_RPC_HANDLERS_H

#include "warden/db/catalog.h"
#include "warden/rpc/request.h"

/* boxes: box_handlers.c */
void handle_box_create(struct request *q);
void handle_box_get(struct request *q);
void handle_box_kill(struct request *q);
void handle_box_timeout(struct request *q);
void handle_box_pause(struct request *q);
void handle_box_connect(struct request *q);
void handle_box_config(struct request *q);
void handle_box_dial(struct request *q);
void handle_box_vouch(struct request *q);
void handle_signed_find(struct request *q);
void handle_box_log(struct request *q);
void handle_box_net_log(struct request *q);
void handle_box_usage(struct request *q);
void handle_event_list(struct request *q);
void handle_usage_latest(struct request *q);
void handle_team_kill(struct request *q);
void handle_status(struct request *q);
void handle_metrics(struct request *q);
void warden_status(struct warden *w, struct wire_status *out); /* all of it */

/* the boxes of a team, sent as fast as the client reads: list_handlers.c */
void handle_box_list(struct request *q);

/* snapshots and forks: copy_handlers.c */
void handle_snapshot(struct request *q);
void handle_snapshot_list(struct request *q);
void handle_box_fork(struct request *q);

/* teams, keys and templates: catalog_handlers.c */
void handle_auth(struct request *q);
void handle_team_list(struct request *q);
void handle_team_usage(struct request *q);
void handle_team_put(struct request *q);
void handle_key_list(struct request *q);
void handle_key_create(struct request *q);
void handle_key_rename(struct request *q);
void handle_key_delete(struct request *q);
void handle_login_code(struct request *q);
void handle_login(struct request *q);
void handle_template_list(struct request *q);
void handle_template_find(struct request *q);
void handle_template_tags(struct request *q);
void handle_tag_history(struct request *q);
void handle_template_builds(struct request *q);
void handle_template_change(struct request *q);
void handle_template_delete(struct request *q);
void handle_tag_put(struct request *q);
void handle_tag_delete(struct request *q);

/* builds of templates and the files they copy: build_handlers.c */
void handle_build_request(struct request *q);
void handle_build_start(struct request *q);
void handle_build_get(struct request *q);
void handle_build_cancel(struct request *q);
void handle_build_diff(struct request *q);
void handle_file_look(struct request *q);
void handle_file_open(struct request *q);
void handle_file_close(struct request *q);

/* webhooks and what was delivered to them: webhook_handlers.c */
void handle_webhook_create(struct request *q);
void handle_webhook_list(struct request *q);
void handle_webhook_get(struct request *q);
void handle_webhook_change(struct request *q);
void handle_webhook_delete(struct request *q);
void handle_webhook_deliveries(struct request *q);
void handle_webhook_stats(struct request *q);

/* secrets of a team, and the master key: secret_handlers.c */
void handle_secret_create(struct request *q);
void handle_secret_list(struct request *q);
void handle_secret_get(struct request *q);
void handle_secret_change(struct request *q);
void handle_secret_delete(struct request *q);
void handle_secret_rotate(struct request *q);
void handle_secret_check(struct request *q);
void handle_identity_keys(struct request *q);
void handle_identity_rotate(struct request *q);
void handle_identity_token(struct request *q);

/* volumes: volume_handlers.c */
void handle_volume_create(struct request *q);
void handle_volume_list(struct request *q);
void handle_volume_get(struct request *q);
void handle_volume_delete(struct request *q);
void handle_content(struct request *q);
void handle_volume_usage(struct request *q);
void handle_volume_open(struct request *q);
void handle_volume_attach(struct request *q);

/* for the host's root user: admin_handlers.c */
void handle_build_show(struct request *q);
void handle_gc(struct request *q);
void handle_box_token(struct request *q);
void handle_template_import(struct request *q);
void handle_template_store(struct request *q);
void handle_doctor(struct request *q);
void handle_node_change(struct request *q);
void handle_node_list(struct request *q);

/* list_handlers.c, for the connection: the client has read some of a long reply, or is gone. */
void box_list_continue(struct ipc *ipc, void *peer);
void box_list_drop(struct peer *p);

/* catalog_handlers.c, for the others: fields of a template with its default build, or with this one. */
struct template *request_template(struct request *q, bool *by_id); /* the one W_REF names; NULL: refused and answered */
void put_template(struct buf *p, struct template *t, struct build *b, struct warden *w);

#endif
