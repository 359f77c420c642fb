/* SPDX-License-Identifier: Apache-2.0 */
/* restore_command.c - `cloche restore`: a data directory from a backup. The store comes last, under its name at once:
 * what an interrupted restore leaves is no data directory, and is refused the next time. */
#include "cli/backup.h"
#include "cli/cli.h"
#include "cli/config.h"
#include "warden/db/store_backup.h"
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>

static const char help[] =
    "cloche restore - a data directory from a backup\n\n"
    "Usage: cloche restore BACKUP [--data DIR]\n\n"
    "Fills DIR, which must be empty or not there, with what 'cloche backup' wrote to the directory BACKUP; the backup\n"
    "stays as it is. Start the server on DIR then: teams, keys, templates, volumes, secrets and sandboxes that were\n"
    "paused on disk are there, under the same ids. Without the master key in the backup, put the saved secrets.key\n"
    "into DIR before the server starts, or it makes another one and no secret opens.\n\n"
    "  --data DIR   the data directory to make [/var/lib/cloche]\n\n"
    "Exit status: 0, 1 when something is in the way, 2 when the command line is wrong.";

struct restore {
  const char *from, *data;
  char old_data[DATA_DIR_SIZE];
  bool key;
  struct err *err;
};

static int read_manifest(struct restore *s)
{
  char path[DATA_PATH_SIZE];
  cleanup_buf struct buf b = BUF_INIT(1 << 20);
  cleanup_arena struct arena a = ARENA_INIT(16 << 20);
  snprintf(path, sizeof(path), "%s/" BACKUP_MANIFEST, s->from);
  int r = file_read(path, &b);
  if (r)
    return err_set(s->err, r, "%s: %s; it is no backup, or one that was interrupted", path, strerrordesc_np(-r));
  const struct json *m = json_read(&a, str_trim(buf_str(&b)), 0, NULL);
  int64_t format = 0;
  if (json_int(json_get(m, "format"), &format) || format < 1)
    return err_set(s->err, -EINVAL, "%s is no manifest of a backup", path);
  if (format > BACKUP_FORMAT)
    return err_set(s->err, -ENOTSUP, "%s was written by a newer cloche (format %lld, this one knows %d)", s->from,
                   (long long)format, BACKUP_FORMAT);
  const struct json *outside = json_get(m, "layersOutside");
  for (const struct json *k = outside ? outside->kids : NULL; k; k = k->next) {
    char layer[DATA_PATH_SIZE];
    if (!str_copyz(json_text(k, STR("")), layer, sizeof(layer)) && access(layer, F_OK))
      return err_set(s->err, -ENOENT,
                     "the backup needs %s of a ready-made template: install the templates of the version that wrote it "
                     "first",
                     layer);
  }
  s->key = json_is(json_get(m, "masterKey"), JSON_BOOL) && json_get(m, "masterKey")->flag;
  return str_copyz(json_text(json_get(m, "data"), STR("")), s->old_data, sizeof(s->old_data));
}

static int empty_data(struct restore *s)
{
  int r = path_mkdirs(s->data, 0700);
  cleanup_dir DIR *d = r ? NULL : opendir(s->data);
  if (!d)
    return err_set(s->err, r ? r : -errno, "%s: %s", s->data, strerrordesc_np(r ? -r : errno));
  for (struct dirent *e; (e = readdir(d));)
    if (strcmp(e->d_name, ".") && strcmp(e->d_name, "..") && strcmp(e->d_name, "lost+found"))
      return err_set(s->err, -ENOTEMPTY, "%s is not empty (%s is there); a restore never mixes with what is there",
                     s->data, e->d_name);
  return chmod(s->data, 0700) ? err_errno(s->err, "%s", s->data) : 0;
}

static int copy(struct restore *s, const char *name, const char *as)
{
  char from[DATA_PATH_SIZE], to[DATA_PATH_SIZE];
  snprintf(from, sizeof(from), "%s/%s", s->from, name);
  snprintf(to, sizeof(to), "%s/%s", s->data, as);
  return tree_copy(from, to, s->err);
}

static int run(struct restore *s)
{
  char store[DATA_PATH_SIZE], named[DATA_PATH_SIZE];
  snprintf(store, sizeof(store), "%s/." BACKUP_STORE, s->data);
  snprintf(named, sizeof(named), "%s/" BACKUP_STORE, s->data);
  int r = read_manifest(s);
  r = r ? r : empty_data(s);
  for (size_t i = 0; !r && i < backup_parts_n; i++)
    r = copy(s, backup_parts[i], backup_parts[i]);
  if (!r && s->key)
    r = copy(s, BACKUP_KEY, BACKUP_KEY);
  r = r ? r : copy(s, BACKUP_STORE, "." BACKUP_STORE);
  r = r ? r : store_copy_check(store, s->err);
  r = r ? r : store_copy_move(store, s->old_data, s->data, s->err);
  r = r ? r : tree_sync(s->data, s->err);
  if (!r && rename(store, named))
    r = err_errno(s->err, "%s", named);
  return r ? r : tree_sync(s->data, s->err);
}

int restore_main(int argc, char **argv)
{
  struct err err = ERR_NONE;
  const char *data = getenv("CLOCHE_DATA");
  struct restore s = {.data = data && data[0] ? data : DATA_DEFAULT, .err = &err};
  for (int i = 1; i < argc; i++) {
    if (!strcmp(argv[i], "--help") || !strcmp(argv[i], "-h"))
      return puts(help), 0;
    if (!strcmp(argv[i], "--data") && i + 1 < argc)
      s.data = argv[++i];
    else if (argv[i][0] == '-' || s.from)
      return usage_error("unexpected word '%s'; see cloche restore --help", argv[i]);
    else
      s.from = argv[i];
  }
  if (!s.from)
    return usage_error("from where? see cloche restore --help");
  if (run(&s))
    return usage_error("%s", err.msg), 1;
  printf("%s is ready for cloche serve --data %s\n", s.data, s.data);
  if (!s.key)
    printf("the master key is not in the backup: put the saved secrets.key into %s first, if there are secrets\n",
           s.data);
  return 0;
}
