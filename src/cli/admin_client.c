/* SPDX-License-Identifier: Apache-2.0 */
/* admin_client.c - see admin_client.h. */
#include "cli/admin_client.h"

#include "cli/config.h"
#include <stdio.h>
#include <sys/socket.h>
#include <sys/un.h>

#define JSON_ROWS_MAX ((size_t)256 << 20)

/* Where the server of this machine has its data, as it reads it itself: environment, config file, default. */
static void default_data(struct line *l)
{
  char *argv[] = {(char *)"serve"};
  struct config c;
  struct err err = ERR_NONE;
  const char *env = getenv("CLOCHE_DATA");
  bool read = !(env && env[0]) && !config_read(&c, 1, argv, &err);
  str_copyz(str_of(env && env[0] ? env : read ? c.warden.data : DATA_DEFAULT), l->data, sizeof(l->data));
  if (!(env && env[0]))
    config_free(&c);
}

static void take_data(struct line *l, int *argc, char **argv)
{
  default_data(l);
  int to = 1;
  for (int i = 1; i < *argc; i++) {
    if (!strcmp(argv[i], "--data") && i + 1 < *argc)
      str_copyz(str_of(argv[++i]), l->data, sizeof(l->data));
    else
      argv[to++] = argv[i];
  }
  *argc = to;
}

int admin_open(struct line *l, int *argc, char **argv, struct err *err)
{
  take_data(l, argc, argv);
  return admin_reopen(l, err);
}

bool admin_server_there(void)
{
  struct line l;
  char path[DATA_PATH_SIZE];
  default_data(&l);
  snprintf(path, sizeof(path), "%s/warden.sock", l.data);
  return !access(path, F_OK);
}

int admin_reopen(struct line *l, struct err *err)
{
  struct sockaddr_un a = {.sun_family = AF_UNIX};
  l->fd = -1;
  if ((size_t)snprintf(a.sun_path, sizeof(a.sun_path), "%s/warden.sock", l->data) >= sizeof(a.sun_path))
    return err_set(err, -ENAMETOOLONG, "data directory %s: the path is too long", l->data);
  l->fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
  struct timeval patience = {.tv_sec = 30};
  setsockopt(l->fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
  if (connect(l->fd, (struct sockaddr *)&a, sizeof(a)))
    return err_errno(err, "no server answers at %s (is 'cloche serve' running with this --data, and are you root?)",
                     a.sun_path);
  return 0;
}

static int call(struct line *l, struct buf *b, void (*item)(struct str, void *), void *arg, int *fd, struct err *err)
{
  ssize_t k = fd_send(l->fd, b->p, b->n, NULL, 0, 0);
  while (k > 0) {
    buf_clear(b);
    if (buf_reserve(b, WIRE_MAX))
      return err_set(err, -ENOMEM, "out of memory");
    int got = -1;
    size_t n = 1;
    k = fd_recv(l->fd, b->p, WIRE_MAX, &got, &n, 0);
    if (n && got >= 0 && fd && *fd < 0)
      *fd = got;
    else if (n && got >= 0)
      close(got);
    if (k <= 0)
      break;
    b->n = (size_t)k;
    struct str packet = buf_str(b);
    if (wire_check(packet))
      return err_set(err, -EPROTO, "the server sent a malformed response");
    if (wire_head(packet)->type == WIRE_ITEM && item)
      item(packet, arg);
    if (wire_head(packet)->type != WIRE_REPLY)
      continue;
    int status = wire_head(packet)->status;
    struct str message = wire_get(packet, W_MESSAGE);
    return status ? err_set(err, status, STR_FMT, STR_ARG(message.n ? message : STR("not found"))) : 0;
  }
  return err_set(err, -EPIPE, "the server closed the connection");
}

int admin_call(struct line *l, struct buf *b, void (*item)(struct str, void *), void *arg, struct err *err)
{
  return call(l, b, item, arg, NULL, err);
}

int admin_fetch(struct line *l, struct buf *b, int *fd, struct err *err)
{
  return call(l, b, NULL, NULL, fd, err);
}

void admin_close(struct line *l)
{
  if (l->fd >= 0)
    close(l->fd);
  l->fd = -1;
}

void admin_take_team(int *argc, char **argv, char team[UUID_SIZE])
{
  int to = 1;
  for (int i = 1; i < *argc; i++) {
    if (!strcmp(argv[i], "--team") && i + 1 < *argc)
      str_copyz(str_of(argv[++i]), team, UUID_SIZE);
    else
      argv[to++] = argv[i];
  }
  *argc = to;
}

bool admin_take_json(int *argc, char **argv)
{
  bool found = false;
  int to = 1;
  for (int i = 1; i < *argc; i++) {
    if (!strcmp(argv[i], "--json"))
      found = true;
    else
      argv[to++] = argv[i];
  }
  *argc = to;
  return found;
}

void json_rows_begin(struct json_rows *r, const struct json_field *fields, size_t count)
{
  *r = (struct json_rows){.fields = fields, .count = count, .out = BUF_INIT(JSON_ROWS_MAX)};
  r->w = JW(&r->out);
  jw_open(&r->w, '[');
}

void json_rows_item(struct str packet, void *rows)
{
  struct json_rows *r = rows;
  jw_open(&r->w, '{');
  for (size_t i = 0; i < r->count; i++) {
    const struct json_field *f = &r->fields[i];
    char when[CLOCK_TEXT];
    uint64_t number = f->kind == FIELD_TEXT ? 0 : wire_u64(packet, f->tag, 0);
    jw_key(&r->w, f->name);
    if (f->kind == FIELD_TEXT) {
      jw_str(&r->w, wire_get(packet, f->tag));
    } else if (f->kind == FIELD_NUMBER) {
      jw_uint(&r->w, number);
    } else if (f->kind == FIELD_FLAG) {
      jw_bool(&r->w, number != 0);
    } else if (f->kind == FIELD_STATE) {
      jw_z(&r->w, box_state_paused((unsigned)number) ? "paused" : "running");
    } else if (number) {
      clock_text((int64_t)number, when);
      jw_z(&r->w, when);
    } else {
      jw_null(&r->w);
    }
  }
  jw_close(&r->w, '}');
}

int json_rows_end(struct json_rows *r, int status)
{
  jw_close(&r->w, ']');
  if (!status)
    printf(STR_FMT "\n", STR_ARG(buf_str(&r->out)));
  buf_free(&r->out);
  return status;
}

int admin_print_json(struct line *l, struct buf *b, const struct json_field *fields, size_t count, struct err *err)
{
  struct json_rows rows = {0};
  json_rows_begin(&rows, fields, count);
  return json_rows_end(&rows, admin_call(l, b, json_rows_item, &rows, err));
}
