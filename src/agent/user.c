/* SPDX-License-Identifier: Apache-2.0 */
/* user.c - /etc/passwd and /etc/group, line by line. Lines that are not whole are passed over. */
#include "agent/user.h"

#define DB_MAX     ((size_t)4 << 20)
#define FIELDS_MAX 8

static bool line_next(struct str *rest, struct str *line)
{
  if (rest->n == 0)
    return false;
  struct str all = *rest;
  str_cut(all, '\n', line, rest);
  return true;
}

static size_t line_split(struct str line, struct str out[FIELDS_MAX])
{
  size_t n = 0;
  bool more = true;
  while (more && n < FIELDS_MAX)
    more = str_cut(line, ':', &out[n++], &line);
  return n;
}

static int id_parse(struct str text, uint32_t *out)
{
  uint64_t v;
  if (str_u64(text, &v) < 0 || v >= UINT32_MAX)
    return -EINVAL;
  *out = (uint32_t)v;
  return 0;
}

int userdb_load(struct userdb *db)
{
  *db = (struct userdb){0};
  buf_init(&db->passwd, DB_MAX);
  buf_init(&db->group, DB_MAX);
  int rc = file_read("/etc/passwd", &db->passwd);
  file_read("/etc/group", &db->group);
  return rc < 0 ? rc : 0;
}

void userdb_free(struct userdb *db)
{
  buf_free(&db->passwd);
  buf_free(&db->group);
}

static bool group_has(struct str members, const char *name)
{
  struct str one;
  bool more = true;
  while (more) {
    more = str_cut(members, ',', &one, &members);
    if (str_is(one, name))
      return true;
  }
  return false;
}

static void groups_add(struct user *u, gid_t gid)
{
  for (size_t i = 0; i < u->ngroups; i++)
    if (u->groups[i] == gid)
      return;
  if (u->ngroups < USER_GROUPS_MAX)
    u->groups[u->ngroups++] = gid;
}

static void groups_load(const struct userdb *db, struct user *u)
{
  struct str rest = buf_str(&db->group), line, f[FIELDS_MAX];
  uint32_t gid;
  u->ngroups = 0;
  groups_add(u, u->gid);
  while (line_next(&rest, &line))
    if (line_split(line, f) >= 4 && id_parse(f[2], &gid) == 0 && group_has(f[3], u->name))
      groups_add(u, gid);
}

static int user_parse(const struct str f[FIELDS_MAX], size_t n, struct user *out)
{
  if (n < 7 || id_parse(f[2], &out->uid) < 0 || id_parse(f[3], &out->gid) < 0)
    return -EINVAL;
  if (str_copyz(f[0], out->name, sizeof(out->name)) < 0 || str_copyz(f[5], out->home, sizeof(out->home)) < 0 ||
      str_copyz(f[6], out->shell, sizeof(out->shell)) < 0)
    return -EINVAL;
  if (!out->home[0])
    out->home[0] = '/', out->home[1] = '\0';
  return 0;
}

int userdb_user(const struct userdb *db, struct str name, struct user *out)
{
  struct str rest = buf_str(&db->passwd), line, f[FIELDS_MAX];
  while (name.n && line_next(&rest, &line)) {
    size_t n = line_split(line, f);
    if (!str_eq(f[0], name) || user_parse(f, n, out) < 0)
      continue;
    groups_load(db, out);
    return 0;
  }
  return -ENOENT;
}

int user_find(struct str name, struct user *out)
{
  cleanup_userdb struct userdb db;
  int rc = userdb_load(&db);
  return rc < 0 ? rc : userdb_user(&db, name, out);
}

static struct str name_of_id(struct str rest, uint32_t id)
{
  struct str line, f[FIELDS_MAX];
  uint32_t found;
  while (line_next(&rest, &line))
    if (line_split(line, f) >= 3 && id_parse(f[2], &found) == 0 && found == id)
      return f[0];
  return STR_NONE;
}

struct str userdb_user_name(struct userdb *db, uid_t uid)
{
  if (!db->has_user || db->last_uid != uid)
    db->last_user = name_of_id(buf_str(&db->passwd), uid);
  db->last_uid = uid;
  db->has_user = true;
  return db->last_user;
}

struct str userdb_group_name(struct userdb *db, gid_t gid)
{
  if (!db->has_group || db->last_gid != gid)
    db->last_group = name_of_id(buf_str(&db->group), gid);
  db->last_gid = gid;
  db->has_group = true;
  return db->last_group;
}
