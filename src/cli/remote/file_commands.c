/* SPDX-License-Identifier: Apache-2.0 */
/* file_commands.c - `cloche ls` and `cat`: files of a sandbox by ID:PATH. */
#include "cli/remote/commands.h"
#include "cli/remote/place.h"
#include "cli/remote/remote.h"

#include <stdio.h>

/* Opens the sandbox of ID:PATH. 0 or an exit status. */
static int open_place(const struct args *args, struct place *at, struct remote *r, struct cloche_box **box)
{
  place_parse(args->words[0], at);
  if (!*at->id)
    return complain("'%s' names no sandbox: write ID:PATH", args->words[0]), EXIT_USAGE;
  int status = remote_open(args, r);
  if (!status && (status = remote_box(r, at->id, box)))
    remote_close(r);
  return status;
}

/* ---- ls ---- */

static void add_row(struct table *t, const struct cloche_entry *e)
{
  char size[U64_TEXT];
  cleanup_free char *name =
      xasprintf("%s%s%s%s", e->name, e->type == CLOCHE_ENTRY_DIRECTORY && !e->is_symlink ? "/" : "",
                e->symlink_target ? " -> " : "", e->symlink_target ? e->symlink_target : "");
  cleanup_free char *modified = xstrndup(e->modified ? e->modified : "", 19);
  snprintf(size, sizeof(size), "%lld", (long long)e->size);
  table_add(t, e->permissions ? e->permissions : "");
  table_add(t, e->owner ? e->owner : "");
  table_add(t, e->group ? e->group : "");
  table_add(t, size);
  table_add(t, modified);
  table_add(t, name);
}

static void text_member(struct jw *w, const char *name, const char *value)
{
  jw_key(w, name);
  if (value)
    jw_z(w, value);
  else
    jw_null(w);
}

static void entries_json(const struct cloche_entry_list *list, struct buf *out)
{
  struct jw w = JW(out);
  jw_open(&w, '[');
  for (size_t i = 0; i < list->count; i++) {
    const struct cloche_entry *e = &list->items[i];
    jw_open(&w, '{');
    text_member(&w, "name", e->name);
    text_member(&w, "path", e->path);
    text_member(&w, "type",
                e->type == CLOCHE_ENTRY_DIRECTORY ? "directory"
                : e->type == CLOCHE_ENTRY_FILE    ? "file"
                                                  : "other");
    jw_key(&w, "size");
    jw_int(&w, e->size);
    text_member(&w, "permissions", e->permissions);
    text_member(&w, "owner", e->owner);
    text_member(&w, "group", e->group);
    text_member(&w, "modified", e->modified);
    text_member(&w, "symlinkTarget", e->symlink_target);
    jw_close(&w, '}');
  }
  jw_close(&w, ']');
  buf_addc(out, '\n');
}

static int list_run(struct args *args)
{
  struct remote r;
  struct place at;
  struct cloche_box *box = NULL;
  struct cloche_entry_list *list = NULL;
  cleanup_buf struct buf out = BUF_INIT(PRINT_MAX);
  struct table table = {.columns = 6};
  int status = open_place(args, &at, &r, &box);
  if (status)
    return status;
  if (cloche_list_dir(box, at.path, 1, NULL, &list, NULL, &r.error))
    status = remote_failed(&r, args->words[0]);
  if (list && args->json)
    entries_json(list, &out);
  for (size_t i = 0; list && !args->json && i < list->count; i++)
    add_row(&table, &list->items[i]);
  table_print(&table, &out);
  status = status ? status : print_out(&out);
  table_free(&table);
  cloche_free(list);
  cloche_box_free(box);
  remote_close(&r);
  return status;
}

/* ---- cat ---- */

/* To a terminal goes text without control characters; to a file or pipe the bytes. */
static int show_file(struct remote *r, struct cloche_box *box, const char *path)
{
  struct cloche_text *content = NULL;
  cleanup_buf struct buf out = BUF_INIT(PRINT_MAX);
  if (!isatty(1))
    return cloche_read_fd(box, path, 1, NULL, NULL, NULL, &r->error) ? remote_failed(r, path) : 0;
  if (cloche_read(box, path, NULL, &content, NULL, &r->error))
    return remote_failed(r, path);
  text_clean(&out, str_make(content->data, content->len), CLEAN_LINES);
  cloche_free(content);
  return print_out(&out);
}

static int cat_run(struct args *args)
{
  struct remote r;
  struct place at;
  struct cloche_box *box = NULL;
  int status = open_place(args, &at, &r, &box);
  if (status)
    return status;
  status = show_file(&r, box, at.path);
  cloche_box_free(box);
  remote_close(&r);
  return status;
}

const struct command_spec list_spec = {
    .name = "ls",
    .summary = "list a directory of a sandbox",
    .usage = "ID:PATH",
    .text = "Relative paths begin at the home directory of the sandbox's user.",
    .least_words = 1,
    .most_words = 1,
    .run = list_run,
};
const struct command_spec cat_spec = {
    .name = "cat",
    .summary = "print a file of a sandbox",
    .usage = "ID:PATH",
    .text = "A terminal gets the text without control characters, anything else the bytes as they are.",
    .least_words = 1,
    .most_words = 1,
    .run = cat_run,
};
