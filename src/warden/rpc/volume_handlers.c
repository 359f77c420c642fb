/* SPDX-License-Identifier: Apache-2.0 */
/* volume_handlers.c - volumes of a team. */
#include "warden/rpc/handlers.h"

#include "warden/core/context.h"
#include "warden/core/storage_quota.h"
#include "warden/volume/volume_content.h"
#include "warden/volume/volume_token.h"
#include "warden/volume/volumes.h"

/* The ready one of the team that W_ID names; false: the refusal is sent. */
static bool wanted(struct request *q, struct row_volume *out)
{
  struct str id = wire_get(q->packet, W_ID);
  struct err err = ERR_NONE;
  if (!volumes_find(q->warden, q->team, id, out))
    return true;
  err_set(&err, -ENOENT, "no volume with the id " STR_FMT, STR_ARG(str_sub(id, 0, UUID_SIZE)));
  reply_err(q, &err);
  return false;
}

static void create_row(struct request *q, bool attached)
{
  struct row_volume row = {.created_us = clock_wall_us(), .attached = attached};
  struct str id = wire_get(q->packet, W_ID);
  if (!uuid_valid(id) || str_copyz(id, row.id, sizeof(row.id)) || !q->team.n ||
      str_copyz(q->team, row.team, sizeof(row.team)) || wire_copyz(q->packet, W_NAME, row.name, sizeof(row.name)))
    reply_error(q, -EINVAL, "a volume needs a UUID, a team and a name");
  else if (!catalog_team(warden_catalog(q->warden), q->team))
    reply_error(q, -ENOENT, "no such team");
  else
    volumes_create(q->warden, request_origin(q), &row);
}

void handle_volume_create(struct request *q)
{
  create_row(q, false);
}

void handle_volume_attach(struct request *q)
{
  create_row(q, true);
}

static int put_item(const struct row_volume *r, void *arg)
{
  struct request *q = arg;
  if (r->state != VOLUME_READY)
    return 0;
  reply_begin(q, WIRE_ITEM, 0);
  volumes_put(q->out, q->warden, r, false);
  reply_send(q);
  return 0;
}

void handle_volume_list(struct request *q)
{
  char team[UUID_SIZE] = "";
  str_copyz(q->team, team, sizeof(team));
  store_volumes(warden_store(q->warden), q->team.n ? team : NULL, put_item, q);
  reply_ok(q);
}

void handle_volume_get(struct request *q)
{
  struct row_volume row;
  if (!wanted(q, &row))
    return;
  reply_begin(q, WIRE_REPLY, 0);
  volumes_put(q->out, q->warden, &row, true);
  reply_send(q);
}

void handle_volume_delete(struct request *q)
{
  struct row_volume row;
  if (wanted(q, &row))
    volumes_remove(q->warden, request_origin(q), &row);
}

/* ---- files ---- */

/* Of a volume that is being deleted all uploads are given up: to say so of one of them again is no error. */
static bool dropped_already(struct request *q, const struct row_volume *row)
{
  return row->state == VOLUME_DELETING && wire_u64(q->packet, W_OP, 0) == CONTENT_DROP &&
         str_is(wire_get(q->packet, W_ID), row->id);
}

/* False: the answer is sent. Root names the team, everybody else shows the token. */
static bool content_volume(struct request *q, struct row_volume *row)
{
  struct str id = wire_get(q->packet, W_ID);
  char opens[UUID_SIZE];
  if (q->proven == BY_ROOT)
    return wanted(q, row);
  if (volume_token_read(str_of(warden_secret(q->warden)), wire_get(q->packet, W_TOKEN), opens) ||
      store_volume_get(warden_store(q->warden), str_of(opens), row) ||
      (row->state != VOLUME_READY && !dropped_already(q, row))) {
    reply_error(q, -EACCES, "the token opens no volume of this server");
    return false;
  }
  if (!str_is(id, row->id))
    reply_error(q, -EPERM, "this token opens another volume");
  else if (dropped_already(q, row))
    reply_ok(q);
  return str_is(id, row->id) && row->state == VOLUME_READY;
}

/* What a volume gets from outside is held back as other uploads are, long before its image is out of blocks. */
static bool has_room(struct request *q)
{
  struct err err = ERR_NONE;
  if (wire_u64(q->packet, W_OP, 0) != CONTENT_UPLOAD || !storage_room(q->warden, ROOM_FOR_BUILD, &err))
    return true;
  reply_error(q, -ENOSPC, err.msg);
  return false;
}

void handle_content(struct request *q)
{
  struct row_volume row;
  if (content_volume(q, &row) && has_room(q))
    volume_content_call(q->warden, request_origin(q), &row, q->packet);
}

void handle_volume_usage(struct request *q)
{
  struct row_volume row;
  if (wanted(q, &row))
    volumes_measure(q->warden, request_origin(q), &row);
}

void handle_volume_open(struct request *q)
{
  struct row_volume row;
  if (wanted(q, &row))
    volumes_hand_out(q->warden, request_origin(q), &row);
}
