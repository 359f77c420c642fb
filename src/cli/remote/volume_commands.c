/* SPDX-License-Identifier: Apache-2.0 */
/* volume_commands.c - the remote form of `cloche volume`: volumes of a team on a named server and their files. Names
 * that a volume tells are made here one by one below an open directory, never through a link. */
#include "cli/remote/commands.h"
#include "cli/remote/place.h"
#include "cli/remote/progress.h"
#include "cli/remote/remote.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>

#define DEPTH_MOST 64

struct volumes {
  struct remote remote;
  struct cloche_volume *volume; /* with its token */
  struct progress progress;
  size_t left_out;
};

/* ---- which one ---- */

/* By its ID or its name. */
static int open_volume(struct volumes *v, const char *name)
{
  struct cloche_volume_list *list = NULL;
  struct remote *r = &v->remote;
  if (cloche_volumes(r->client, &list, NULL, &r->error))
    return remote_failed(r, NULL);
  const char *id = NULL;
  for (size_t i = 0; i < list->count; i++)
    if (!strcmp(list->items[i].id, name) || !strcmp(list->items[i].name, name))
      id = list->items[i].id;
  int status = 0;
  if (!id)
    status = complain("%s: no such volume; 'cloche volume list' names all", name);
  else if (cloche_volume_get(r->client, id, &v->volume, NULL, &r->error))
    status = remote_failed(r, name);
  cloche_free(list);
  return status;
}

static void volumes_close(struct volumes *v)
{
  cloche_free(v->volume);
  remote_close(&v->remote);
}

static int open_both(struct volumes *v, const struct args *args, const char *name)
{
  int status = remote_open(args, &v->remote);
  if (status || !name || !(status = open_volume(v, name)))
    return status;
  volumes_close(v);
  return status;
}

/* ---- volumes ---- */

static int list_run(struct args *args)
{
  struct volumes v = {0};
  struct cloche_volume_list *list = NULL;
  struct table table = {.columns = 2};
  cleanup_buf struct buf out = BUF_INIT(PRINT_MAX);
  struct jw w = JW(&out);
  int status = open_both(&v, args, NULL);
  if (status)
    return status;
  table_add(&table, "ID");
  table_add(&table, "NAME");
  if (cloche_volumes(v.remote.client, &list, NULL, &v.remote.error))
    status = remote_failed(&v.remote, NULL);
  if (args->json)
    jw_open(&w, '[');
  for (size_t i = 0; !status && i < list->count; i++) {
    table_add(&table, list->items[i].id);
    table_add(&table, list->items[i].name);
    if (!args->json)
      continue;
    jw_open(&w, '{');
    jw_key(&w, "volumeID");
    jw_z(&w, list->items[i].id);
    jw_key(&w, "name");
    jw_z(&w, list->items[i].name);
    jw_close(&w, '}');
  }
  if (args->json) {
    jw_close(&w, ']');
    buf_addc(&out, '\n');
  } else {
    table_print(&table, &out);
  }
  status = status ? status : print_out(&out);
  table_free(&table);
  cloche_free(list);
  volumes_close(&v);
  return status;
}

static int create_run(struct args *args)
{
  struct volumes v = {0};
  int status = open_both(&v, args, NULL);
  if (status)
    return status;
  if (cloche_volume_create(v.remote.client, args->words[0], &v.volume, NULL, &v.remote.error))
    status = remote_failed(&v.remote, args->words[0]);
  else
    printf(args->json ? "{\"volumeID\":\"%s\"}\n" : "%s\n", v.volume->id);
  volumes_close(&v);
  return status;
}

static int rm_run(struct args *args)
{
  struct volumes v = {0};
  int status = open_both(&v, args, args->words[0]);
  if (status)
    return status;
  if (cloche_volume_delete(v.remote.client, v.volume->id, NULL, NULL, &v.remote.error))
    status = remote_failed(&v.remote, args->words[0]);
  else if (args->json)
    puts("{}");
  volumes_close(&v);
  return status;
}

/* ---- files ---- */

/* "NAME:/PATH"; a path without its slash begins at the volume's top. Owned by the caller. */
static char *volume_path(const struct place *p)
{
  return xasprintf("%s%s", p->path[0] == '/' ? "" : "/", strcmp(p->path, ".") ? p->path : "");
}

static int place_in_volume(const char *word, struct place *p)
{
  place_parse(word, p);
  return *p->id ? 0 : (complain("'%s' is no place in a volume: NAME:/PATH", word), EXIT_USAGE);
}

static void add_entry(struct table *t, struct jw *w, const struct cloche_volume_entry *e)
{
  cleanup_buf struct buf mode = BUF_INIT(32), size = BUF_INIT(32);
  buf_addf(&mode, "%s %04o", e->type ? e->type : "", (unsigned)e->mode & 07777);
  buf_addf(&size, "%lld", (long long)e->size);
  table_add(t, buf_z(&mode));
  table_add(t, buf_z(&size));
  table_add(t, e->mtime ? e->mtime : "");
  table_add(t, e->name);
  jw_open(w, '{');
  const struct cloche_pair texts[] = {{"name", e->name}, {"path", e->path}, {"type", e->type}, {"mtime", e->mtime}};
  for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
    jw_key(w, texts[i].name);
    jw_z(w, texts[i].value ? texts[i].value : "");
  }
  jw_key(w, "size");
  jw_int(w, e->size);
  jw_key(w, "mode");
  jw_int(w, e->mode);
  jw_close(w, '}');
}

static int ls_run(struct args *args)
{
  struct volumes v = {0};
  struct place p;
  struct table table = {.columns = 4};
  struct cloche_volume_entry_list *list = NULL;
  cleanup_buf struct buf out = BUF_INIT(PRINT_MAX), json = BUF_INIT(PRINT_MAX);
  struct jw w = JW(&json);
  int status = place_in_volume(args->words[0], &p);
  status = status ? status : open_both(&v, args, p.id);
  if (status)
    return status;
  cleanup_free char *path = volume_path(&p);
  if (cloche_volume_list_dir(v.remote.client, v.volume, path, 1, &list, NULL, &v.remote.error))
    status = remote_failed(&v.remote, args->words[0]);
  jw_open(&w, '[');
  for (size_t i = 0; !status && i < list->count; i++)
    add_entry(&table, &w, &list->items[i]);
  jw_close(&w, ']');
  buf_addc(&json, '\n');
  table_print(&table, &out);
  table_free(&table);
  status = status ? status : print_out(args->json ? &json : &out);
  cloche_free(list);
  volumes_close(&v);
  return status;
}

static int cat_run(struct args *args)
{
  struct volumes v = {0};
  struct place p;
  int status = place_in_volume(args->words[0], &p);
  status = status ? status : open_both(&v, args, p.id);
  if (status)
    return status;
  cleanup_free char *path = volume_path(&p);
  struct cloche_text *text = NULL;
  cleanup_buf struct buf out = BUF_INIT(PRINT_MAX);
  if (cloche_volume_read(v.remote.client, v.volume, path, &text, NULL, &v.remote.error))
    status = remote_failed(&v.remote, args->words[0]);
  else if (isatty(1))
    text_clean(&out, str_make(text->data, text->len), CLEAN_LINES);
  else
    buf_add(&out, text->data, text->len);
  status = status ? status : print_out(&out);
  cloche_free(text);
  volumes_close(&v);
  return status;
}

static int remove_run(struct args *args)
{
  struct volumes v = {0};
  struct place p;
  bool existed = true;
  int status = place_in_volume(args->words[0], &p);
  status = status ? status : open_both(&v, args, p.id);
  if (status)
    return status;
  cleanup_free char *path = volume_path(&p);
  if (cloche_volume_remove(v.remote.client, v.volume, path, &existed, NULL, &v.remote.error))
    status = remote_failed(&v.remote, args->words[0]);
  else if (!existed)
    status = complain("%s: no such file or directory", args->words[0]);
  else if (args->json)
    puts("{}");
  volumes_close(&v);
  return status;
}

/* ---- copying ---- */

static int put_file(struct volumes *v, int fd, const char *name, const char *to)
{
  progress_begin(&v->progress, path_last(name));
  const struct cloche_volume_write options = {
      .size = sizeof(options), .force = true, .on_progress = progress_bytes, .user = &v->progress};
  enum cloche_code code =
      cloche_volume_write_fd(v->remote.client, v->volume, to, fd, &options, NULL, NULL, &v->remote.error);
  progress_end(&v->progress);
  return code ? remote_failed(&v->remote, to) : 0;
}

/* The directories that a file's path names, where they are missing. */
static int make_parents(struct volumes *v, const char *to)
{
  struct str dir = path_dir(str_of(to));
  cleanup_free char *path = xstrndup(dir.p, dir.n);
  if (dir.n < 2)
    return 0;
  return cloche_volume_make_dir(v->remote.client, v->volume, path, CLOCHE_WITH(cloche_volume_write, .force = true),
                                NULL, NULL, &v->remote.error)
             ? remote_failed(&v->remote, path)
             : 0;
}

static int put_tree(struct volumes *v, int fd, const char *to, unsigned depth)
{
  struct dirent *e;
  int status = 0;
  if (depth > DEPTH_MOST)
    return close(fd), complain("%s: more than %d directories deep", to, DEPTH_MOST);
  if (cloche_volume_make_dir(v->remote.client, v->volume, to, CLOCHE_WITH(cloche_volume_write, .force = true), NULL,
                             NULL, &v->remote.error))
    return close(fd), remote_failed(&v->remote, to);
  DIR *dir = fdopendir(fd);
  if (!dir)
    return close(fd), complain("%s: %s", to, strerror(errno));
  while (!status && (e = readdir(dir))) {
    if (!name_is_plain(e->d_name))
      continue;
    struct stat st;
    int in = openat(dirfd(dir), e->d_name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    cleanup_free char *there = xasprintf("%s/%s", to, e->d_name);
    if (in < 0 || fstat(in, &st) || (!S_ISDIR(st.st_mode) && !S_ISREG(st.st_mode))) {
      v->left_out++;
      if (in >= 0)
        close(in);
    } else if (S_ISDIR(st.st_mode)) {
      status = put_tree(v, in, there, depth + 1);
    } else {
      status = put_file(v, in, e->d_name, there);
      close(in);
    }
  }
  closedir(dir);
  return status;
}

static int copy_in(struct volumes *v, const char *from, const char *to, bool recursive)
{
  struct stat st;
  int fd = open(from, O_RDONLY | O_CLOEXEC);
  if (fd < 0 || fstat(fd, &st)) {
    int e = errno;
    if (fd >= 0)
      close(fd);
    return complain("%s: %s", from, strerror(e));
  }
  if (S_ISDIR(st.st_mode))
    return recursive ? put_tree(v, fd, to, 0) : (close(fd), complain("%s is a directory: -r copies it", from));
  struct str name = path_last(from);
  bool inside = to[strlen(to) - 1] == '/';
  cleanup_free char *there = inside ? xasprintf("%s" STR_FMT, to, STR_ARG(name)) : xstrdup(to);
  int status = make_parents(v, there);
  status = status ? status : put_file(v, fd, from, there);
  close(fd);
  return status;
}

static int get_file(struct volumes *v, const char *from, int dir, const char *name, bool follow)
{
  cleanup_fd int fd = openat(dir, name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | (follow ? 0 : O_NOFOLLOW), 0666);
  if (fd < 0)
    return complain("%s: %s", name, strerror(errno));
  return cloche_volume_read_fd(v->remote.client, v->volume, from, fd, NULL, NULL, &v->remote.error)
             ? remote_failed(&v->remote, from)
             : 0;
}

static int get_tree(struct volumes *v, const char *from, int parent, const char *name, unsigned depth)
{
  struct cloche_volume_entry_list *list = NULL;
  int status = 0;
  if (depth > DEPTH_MOST)
    return complain("%s: more than %d directories deep", from, DEPTH_MOST);
  if (mkdirat(parent, name, 0777) && errno != EEXIST)
    return complain("%s: %s", name, strerror(errno));
  cleanup_fd int dir = openat(parent, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC | (depth ? O_NOFOLLOW : 0));
  if (dir < 0)
    return complain("%s: %s", name, strerror(errno));
  if (cloche_volume_list_dir(v->remote.client, v->volume, from, 1, &list, NULL, &v->remote.error))
    return remote_failed(&v->remote, from);
  for (size_t i = 0; !status && i < list->count; i++) {
    const struct cloche_volume_entry *e = &list->items[i];
    cleanup_free char *path = xasprintf("%s/%s", strcmp(from, "/") ? from : "", e->name);
    bool tree = e->type && !strcmp(e->type, "directory"), file = e->type && !strcmp(e->type, "file");
    if (!name_is_plain(e->name) || (!tree && !file))
      v->left_out++;
    else
      status = tree ? get_tree(v, path, dir, e->name, depth + 1) : get_file(v, path, dir, e->name, false);
  }
  cloche_free(list);
  return status;
}

static int copy_out(struct volumes *v, const char *from, const char *to, bool recursive)
{
  struct stat st;
  struct cloche_volume_entry *e = NULL;
  if (cloche_volume_stat(v->remote.client, v->volume, from, &e, NULL, &v->remote.error))
    return remote_failed(&v->remote, from);
  bool tree = e->type && !strcmp(e->type, "directory");
  cloche_free(e);
  if (tree && !recursive)
    return complain("%s is a directory: -r copies it", from);
  bool inside = !stat(to, &st) && S_ISDIR(st.st_mode) && path_last(from).n;
  cleanup_free char *path = inside ? xasprintf("%s/" STR_FMT, to, STR_ARG(path_last(from))) : xstrdup(to);
  return tree ? get_tree(v, from, AT_FDCWD, path, 0) : get_file(v, from, AT_FDCWD, path, true);
}

static int cp_run(struct args *args)
{
  struct volumes v = {0};
  struct place from, to;
  place_parse(args->words[0], &from);
  place_parse(args->words[1], &to);
  if (!*from.id == !*to.id)
    return complain("one of both must be NAME:/PATH, the other one local (./NAME where a name has a colon)"),
           EXIT_USAGE;
  int status = open_both(&v, args, *from.id ? from.id : to.id);
  if (status)
    return status;
  cleanup_free char *path = volume_path(*from.id ? &from : &to);
  status = *to.id ? copy_in(&v, from.path, path, args->recursive) : copy_out(&v, path, to.path, args->recursive);
  if (v.left_out)
    complain("%zu entries that are neither files nor directories were left out", v.left_out);
  volumes_close(&v);
  return status;
}

/* ---- tables ---- */

static const struct option_spec volume_options[] = {
    {"recursive", 'r', NULL, "cp: directories with all they hold", OPTION_FLAG, offsetof(struct args, recursive), 0, 0},
};
static const struct verb_spec volume_verbs[] = {
    {"list", "", "the volumes there are", 0, 0, list_run},
    {"create", "NAME", "make one and print its ID", 1, 1, create_run},
    {"rm", "NAME", "delete one with all its files", 1, 1, rm_run},
    {"ls", "NAME:/PATH", "the files of a directory", 1, 1, ls_run},
    {"cat", "NAME:/PATH", "print a file", 1, 1, cat_run},
    {"cp", "SOURCE TARGET", "copy files; one of both is NAME:/PATH", 2, 2, cp_run},
    {"remove", "NAME:/PATH", "delete a file, or a directory with all it holds", 1, 1, remove_run},
};
const struct command_spec volume_spec = {
    .name = "volume",
    .summary = "volumes: make, list, copy",
    .usage = "",
    .text =
        "NAME may also be a volume's ID. Out of a volume come plain files and directories; others are left out and\n"
        "counted. Root on the server itself has more: attach, du, backup, restore.",
    .options = volume_options,
    .option_count = ARRAY_LEN(volume_options),
    .verbs = volume_verbs,
    .verb_count = ARRAY_LEN(volume_verbs),
};
