/* SPDX-License-Identifier: Apache-2.0 */
/* audit.c - see audit.h: the loop, the supervisor's words and the records of gates and warden. */
#include "audit/audit.h"

#include "audit/audit_file.h"
#include "audit/audit_role.h"
#include "wire/audit_record.h"
#include "wire/control.h"
#include "wire/ipc.h"
#include "wire/sizes.h"
#include <fcntl.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/stat.h>

#define SYNC_MS      1000 /* what is written is on the disk after so long */
#define COMPLAIN_US  60000000
#define LINE_MAX_LEN ((size_t)64 << 10)

struct audit {
  const struct audit_config *config;
  uv_loop_t *loop;
  struct ipc *control;
  struct audit_file file, refused; /* the second has what nobody with a key has asked for */
  uv_timer_t sync;
  uint64_t lost; /* records that could not be written since the last one that was */
  int64_t complained_us;
  bool unsynced;
};

struct teller {
  struct audit *audit;
  bool warden;   /* else a gate */
  uint64_t gate; /* its number */
};

/* ---- records ---- */

static void complain(struct audit *a, int error)
{
  int64_t now = clock_mono_us();
  if (a->complained_us && now - a->complained_us < COMPLAIN_US)
    return;
  a->complained_us = now;
  log_error("audit log: %s; records are counted as lost until it can be written again", strerrordesc_np(-error));
}

static void write_line(struct audit *a, struct str line, bool unproven)
{
  int r = audit_file_add(unproven ? &a->refused : &a->file, line, a->config->file_max,
                         unproven ? a->config->refused_files : a->config->files_max);
  if (r) {
    complain(a, r);
    return;
  }
  a->lost = 0;
  if (!a->unsynced)
    uv_timer_start(&a->sync, a->sync.timer_cb, SYNC_MS, 0);
  a->unsynced = true;
}

static void log_record(const struct audit_record *r, const struct teller *from)
{
  char status[16], number[24], left_out[24];
  cleanup_arena struct arena arena = ARENA_INIT(1 << 16);
#define Z(field) arena_z(&arena, r->field)
  snprintf(status, sizeof(status), "%u", r->status);
  snprintf(number, sizeof(number), "%llu", (unsigned long long)from->gate);
  snprintf(left_out, sizeof(left_out), "%llu", (unsigned long long)r->left_out);
  log_with(LOG_INFO,
           (const char *[]){"audit",
                            "1",
                            "gate",
                            from->warden ? "" : number,
                            "team",
                            Z(team),
                            "key",
                            Z(key),
                            "client",
                            Z(client),
                            "id",
                            Z(id),
                            "second",
                            Z(second),
                            "made",
                            Z(made),
                            "status",
                            status,
                            r->left_out ? "leftOut" : NULL,
                            left_out,
                            NULL},
           "audit: " STR_FMT " " STR_FMT, STR_ARG(r->method), STR_ARG(r->route));
#undef Z
}

static void teller_packet(struct ipc *l, struct str packet, int fd, void *arg)
{
  struct teller *from = arg;
  struct audit *a = from->audit;
  struct audit_record r;
  if (fd >= 0)
    close(fd);
  if (audit_record_read(packet, from->warden, &r))
    return;
  if (a->config->to_log) {
    log_record(&r, from);
    return;
  }
  r.lost += a->lost++; /* until this one is written */
  cleanup_buf struct buf b = BUF_INIT(LINE_MAX_LEN);
  audit_record_line(&b, &r, from->gate, clock_wall_us());
  if (buf_failed(&b))
    complain(a, buf_failed(&b));
  else
    write_line(a, buf_str(&b), audit_record_unproven(&r));
}

static void teller_closed(struct ipc *l, void *arg)
{
  ipc_free(l);
  free(arg);
}

static const struct ipc_ops teller_ops = {teller_packet, teller_closed};

static void sync_now(uv_timer_t *t)
{
  struct audit *a = t->data;
  a->unsynced = false;
  if (a->file.fd >= 0)
    fdatasync(a->file.fd);
  if (a->refused.fd >= 0)
    fdatasync(a->refused.fd);
}

/* ---- the supervisor ---- */

/* "<number of the gate>" and its link; without a number it is the warden's. */
static void take_teller(struct audit *a, struct str number, int fd)
{
  struct teller *from = xcalloc(1, sizeof(*from));
  from->audit = a;
  from->warden = !number.n;
  str_u64(number, &from->gate);
  ipc_guard(ipc_new(a->loop, fd, &teller_ops, from));
}

static void control_packet(struct ipc *l, struct str packet, int fd, void *arg)
{
  struct audit *a = arg;
  if (packet.p[0] == CONTROL_LINK && fd >= 0)
    take_teller(a, str_skip(packet, 1), fd);
  else if (fd >= 0)
    close(fd);
  control_settings(packet);
  if (packet.p[0] == CONTROL_STOP)
    uv_stop(a->loop);
}

static void control_closed(struct ipc *l, void *arg)
{
  struct audit *a = arg;
  uv_stop(a->loop);
}

static const struct ipc_ops control_ops = {control_packet, control_closed};

/* ---- start ---- */

/* The data directory is root's alone, and so is what is directly in it; the files are the role's. */
static int open_directory(const struct audit_config *c, int *dir, struct err *err)
{
  char path[DATA_PATH_SIZE];
  snprintf(path, sizeof(path), "%s/%s/%s", c->data, AUDIT_TOP_DIR, AUDIT_LOG_DIR);
  int r = path_mkdirs(path, 0700);
  *dir = r ? -1 : open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  if (r || *dir < 0 || (c->uid && (fchown(*dir, c->uid, c->uid) || fchmod(*dir, 0700))))
    return err_set(err, r ? r : -errno, "audit log: %s: %s", path, strerrordesc_np(r ? -r : errno));
  struct audit_names all = {0};
  audit_file_names(*dir, AUDIT_PROVEN, &all); /* files of an earlier start under another user */
  audit_file_names(*dir, AUDIT_REFUSED, &all);
  int failed = 0;
  for (size_t i = 0; c->uid && i < all.names.n && !failed; i++)
    failed = fchownat(*dir, all.names.p[i], c->uid, c->uid, AT_SYMLINK_NOFOLLOW);
  audit_names_free(&all);
  return failed ? err_errno(err, "audit log: owner of the files in %s", path) : 0;
}

int audit_main(const struct audit_config *config)
{
  static uv_loop_t loop;
  static struct audit a; /* to the process's end */
  struct err err = ERR_NONE;
  int dir = -1;
  prctl(PR_SET_NAME, "cloche-audit");
  uv_loop_init(&loop);
  a = (struct audit){.config = config, .loop = &loop, .file = {.set = AUDIT_PROVEN, .fd = -1}};
  a.refused = (struct audit_file){.set = AUDIT_REFUSED, .fd = -1};
  uv_timer_init(&loop, &a.sync);
  a.sync.data = &a;
  a.sync.timer_cb = sync_now;
  a.control = ipc_new(&loop, CONTROL_FD, &control_ops, &a);
  int r = config->to_log ? 0 : open_directory(config, &dir, &err);
  r = r ? r : confine_rights(&audit_role, config->uid, &err);
  a.file.dir = a.refused.dir = dir;
  r = r || config->to_log ? r : audit_file_open(&a.file, &err);
  if (r || confine_filter(&audit_role, config->uid, &err))
    return control_failed(a.control, &err);
  ipc_send(a.control, (struct str){(char[]){CONTROL_READY}, 1}, -1);
  uv_run(&loop, UV_RUN_DEFAULT);
  if (a.unsynced)
    sync_now(&a.sync);
  return 0;
}
