/* SPDX-License-Identifier: Apache-2.0 */
/* volume_command.c - `cloche volume`: volumes of teams, for the host's root user. */
#include "cli/cli.h"
#include "cli/volume_client.h"
#include "wire/volume_path.h"

#include <stdio.h>

static const char help[] =
    "cloche volume - volumes of a team\n\n"
    "Usage: cloche volume list                   the volumes there are\n"
    "       cloche volume create NAME            make one and print its id\n"
    "       cloche volume attach ID NAME         one that another server made in the shared volumes_dir\n"
    "       cloche volume rm NAME                delete one with all its files; of an attached one the files stay\n"
    "       cloche volume cp SOURCE TARGET       copy files or trees; one of the two is NAME:/PATH\n"
    "       cloche volume du [NAME...]           how full they are\n"
    "       cloche volume backup NAME [FILE]     write all of one to a tar archive, or to standard output\n"
    "       cloche volume restore NAME [FILE]    take an archive, or standard input, into one\n\n"
    "Options: --data DIR   the server's data directory [/var/lib/cloche]\n"
    "         --team ID    another team than the first one; list shows all teams without it\n"
    "         --json       list: print JSON for programs";

/* ---- the volume that is meant ---- */

struct wanted {
  const char *name;
  struct volume_client *client;
};

static void match(struct str p, void *arg)
{
  struct wanted *w = arg;
  if (str_is(wire_get(p, W_NAME), w->name) || str_is(wire_get(p, W_ID), w->name))
    wire_copyz(p, W_ID, w->client->id, sizeof(w->client->id));
}

static int find(struct volume_client *c, const char *name, struct err *err)
{
  cleanup_buf struct buf b = BUF_INIT(WIRE_MAX);
  struct wanted w = {name, c};
  c->id[0] = 0;
  wire_begin(&b, WIRE_VOLUME_LIST, 1, 0);
  wire_putz(&b, W_TEAM, c->team);
  int r = admin_call(&c->line, &b, match, &w, err);
  if (!r && !c->id[0])
    r = err_set(err, -ENOENT, "this team has no volume '%s'; see cloche volume list", name);
  return r;
}

/* ---- commands ---- */

static void print_volume(struct str p, void *arg)
{
  char when[CLOCK_TEXT];
  clock_text((int64_t)wire_u64(p, W_CREATED, 0), when);
  printf("%.*s  %.*s  %.19s  %.*s\n", STR_ARG(wire_get(p, W_ID)), STR_ARG(wire_get(p, W_TEAM)), when,
         STR_ARG(wire_get(p, W_NAME)));
}

static int list(struct volume_client *c, bool all, bool json, struct err *err)
{
  static const struct json_field fields[] = {{"volumeID", W_ID, FIELD_TEXT},
                                             {"name", W_NAME, FIELD_TEXT},
                                             {"teamID", W_TEAM, FIELD_TEXT},
                                             {"createdAt", W_CREATED, FIELD_TIME}};
  cleanup_buf struct buf b = BUF_INIT(WIRE_MAX);
  wire_begin(&b, WIRE_VOLUME_LIST, 1, 0);
  if (!all)
    wire_putz(&b, W_TEAM, c->team);
  if (json)
    return admin_print_json(&c->line, &b, fields, ARRAY_LEN(fields), err);
  return admin_call(&c->line, &b, print_volume, NULL, err);
}

static bool name_good(struct str s)
{
  for (size_t i = 0; i < s.n; i++)
    if (!strchr("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-", s.p[i]))
      return false;
  return s.n > 0 && s.n < VOLUME_NAME_SIZE;
}

/* given: of one that is attached; NULL: a new one. */
static int create(struct volume_client *c, const char *given, const char *name, struct err *err)
{
  cleanup_buf struct buf b = BUF_INIT(WIRE_MAX);
  char id[UUID_TEXT];
  if (given && (!uuid_valid(str_of(given)) || str_copyz(str_of(given), id, sizeof(id))))
    return err_set(err, -EINVAL, "'%s' is not the id of a volume; see cloche volume list of its server", given);
  if (!name_good(str_of(name)))
    return err_set(err, -EINVAL, "a name is 1 to %d letters, digits, '_' or '-', not '%s'", VOLUME_NAME_SIZE - 1, name);
  if (!given)
    uuid4(id);
  wire_begin(&b, given ? WIRE_VOLUME_ATTACH : WIRE_VOLUME_CREATE, 1, 0);
  wire_putz(&b, W_TEAM, c->team);
  wire_putz(&b, W_ID, id);
  wire_putz(&b, W_NAME, name);
  int r = admin_call(&c->line, &b, NULL, NULL, err);
  if (!r)
    puts(id);
  return r;
}

static int call_about(struct volume_client *c, enum wire_type type, const char *name, struct buf *b, struct err *err)
{
  int r = find(c, name, err);
  if (r)
    return r;
  wire_begin(b, type, 1, 0);
  wire_putz(b, W_TEAM, c->team);
  wire_putz(b, W_ID, c->id);
  return admin_call(&c->line, b, NULL, NULL, err);
}

static int rm(struct volume_client *c, const char *name, struct err *err)
{
  cleanup_buf struct buf b = BUF_INIT(WIRE_MAX);
  return call_about(c, WIRE_VOLUME_DELETE, name, &b, err);
}

struct names {
  VEC(char *) all;
};

static void keep_name(struct str p, void *arg)
{
  struct names *n = arg;
  struct str name = wire_get(p, W_NAME);
  vec_push(&n->all, xstrndup(name.p, name.n));
}

static int du_one(struct volume_client *c, const char *name, struct err *err)
{
  cleanup_buf struct buf b = BUF_INIT(WIRE_MAX);
  struct wire_volume_usage u;
  int r = call_about(c, WIRE_VOLUME_USAGE, name, &b, err);
  struct str raw = r ? STR_NONE : wire_get(buf_str(&b), W_SAMPLE);
  if (!r && raw.n != sizeof(u))
    return err_set(err, -EPROTO, "the server's answer can't be read");
  if (r)
    return r;
  memcpy(&u, raw.p, sizeof(u));
  printf("%s%10.1f MiB of %llu  %8llu files of %llu  %s\n", u.whole ? "" : "more than ", (double)u.bytes / (1 << 20),
         (unsigned long long)(u.bytes_max >> 20), (unsigned long long)u.inodes, (unsigned long long)u.inodes_max, name);
  return 0;
}

static int du(struct volume_client *c, int argc, char **argv, struct err *err)
{
  struct names n = {0};
  int r = 0;
  for (int i = 2; i < argc; i++)
    vec_push(&n.all, xstrdup(argv[i]));
  if (argc == 2) {
    cleanup_buf struct buf b = BUF_INIT(WIRE_MAX);
    wire_begin(&b, WIRE_VOLUME_LIST, 1, 0);
    wire_putz(&b, W_TEAM, c->team);
    r = admin_call(&c->line, &b, keep_name, &n, err);
  }
  for (size_t i = 0; i < n.all.n; i++) {
    r = r ? r : du_one(c, n.all.p[i], err);
    free(n.all.p[i]);
  }
  vec_free(&n.all);
  return r;
}

/* NAME:/PATH; a colon behind a slash is a part of a file's name. */
static bool is_remote(const char *text, struct str *name, struct str *path)
{
  ptrdiff_t slash = str_find(str_of(text), '/'), colon = str_find(str_of(text), ':');
  return colon > 0 && (slash < 0 || colon < slash) && str_cut(str_of(text), ':', name, path);
}

static int cp(struct volume_client *c, const char *from, const char *to, struct err *err)
{
  struct str name, path;
  char volume[VOLUME_NAME_SIZE];
  cleanup_buf struct buf clean = BUF_INIT(1 << 17);
  bool in = is_remote(to, &name, &path), out = !in && is_remote(from, &name, &path);
  if (in && is_remote(from, &name, &path))
    return err_set(err, -EINVAL, "one of the two must be a path on this machine");
  if (in)
    is_remote(to, &name, &path);
  if (!in && !out)
    return err_set(err, -EINVAL, "one of the two must be NAME:/PATH");
  if (str_copyz(name, volume, sizeof(volume)) || volume_path_clean(path.n ? path : STR("/"), &clean))
    return err_set(err, -EINVAL, "'" STR_FMT "' is no path in a volume", STR_ARG(str_sub(path, 0, 200)));
  int r = find(c, volume, err);
  return r ? r : volume_copy(c, in, in ? from : to, buf_z(&clean), err);
}

static int run(struct volume_client *c, int argc, char **argv, bool all, bool json, struct err *err)
{
  const char *verb = argv[1], *first = argc > 2 ? argv[2] : NULL, *second = argc > 3 ? argv[3] : NULL;
  if (!strcmp(verb, "list") && !first)
    return list(c, all, json, err);
  if (!strcmp(verb, "create") && first && !second)
    return create(c, NULL, first, err);
  if (!strcmp(verb, "attach") && second && argc == 4)
    return create(c, first, second, err);
  if (!strcmp(verb, "rm") && first && !second)
    return rm(c, first, err);
  if (!strcmp(verb, "du"))
    return du(c, argc, argv, err);
  if (!strcmp(verb, "cp") && second && argc == 4)
    return cp(c, first, second, err);
  if ((!strcmp(verb, "backup") || !strcmp(verb, "restore")) && first && argc <= 4) {
    int r = find(c, first, err);
    const char *file = second ? second : "-";
    return r ? r : !strcmp(verb, "backup") ? volume_backup(c, file, err) : volume_restore(c, file, err);
  }
  return err_set(err, -EINVAL, "expected list, create, rm, cp, du, backup or restore; see cloche volume --help");
}

static void first_team(struct str packet, void *arg)
{
  char *team = arg;
  if (!team[0])
    wire_copyz(packet, W_TEAM, team, UUID_SIZE);
}

static bool take_team(int *argc, char **argv, char team[UUID_SIZE])
{
  int to = 1;
  for (int i = 1; i < *argc; i++) {
    if (!strcmp(argv[i], "--team") && i + 1 < *argc)
      str_copyz(str_of(argv[++i]), team, UUID_SIZE);
    else
      argv[to++] = argv[i];
  }
  *argc = to;
  return team[0] == 0;
}

int volume_main(int argc, char **argv)
{
  struct volume_client c = {0};
  struct err err = ERR_NONE;
  if (argc < 2 || !strcmp(argv[1], "--help")) {
    puts(help);
    return argc < 2 ? 2 : 0;
  }
  bool all = take_team(&argc, argv, c.team), json = admin_take_json(&argc, argv);
  int r = admin_open(&c.line, &argc, argv, &err);
  if (!r && argc < 2)
    r = err_set(&err, -EINVAL, "a command is missing; see cloche volume --help");
  if (!r && all) {
    cleanup_buf struct buf b = BUF_INIT(WIRE_MAX);
    wire_begin(&b, WIRE_TEAM_LIST, 1, 0);
    r = admin_call(&c.line, &b, first_team, c.team, &err);
  }
  r = r ? r : run(&c, argc, argv, all, json, &err);
  admin_close(&c.line);
  return r ? usage_error("%s", err.msg), 1 : 0;
}
