/* SPDX-License-Identifier: Apache-2.0 */
/* audit_file.c - see audit_file.h. */
#include "audit/audit_file.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>

static int by_name(const void *a, const void *b)
{
  return strcmp(*(char *const *)a, *(char *const *)b);
}

void audit_file_current(const char *set, char out[AUDIT_FILE_NAME])
{
  snprintf(out, AUDIT_FILE_NAME, "%s.jsonl", set);
}

/* "<set>-" */
static struct str full_prefix(const char *set, char out[AUDIT_FILE_NAME])
{
  return str_make(out, (size_t)snprintf(out, AUDIT_FILE_NAME, "%s-", set));
}

int audit_file_names(int dir, const char *set, struct audit_names *out)
{
  char current_name[AUDIT_FILE_NAME], start[AUDIT_FILE_NAME];
  struct str prefix = full_prefix(set, start);
  audit_file_current(set, current_name);
  int copy = openat(dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  cleanup_dir DIR *d = copy < 0 ? NULL : fdopendir(copy);
  if (!d)
    return -errno;
  bool current = false;
  for (struct dirent *e; (e = readdir(d));) {
    struct str name = str_of(e->d_name);
    current |= str_is(name, current_name);
    if (str_starts(name, prefix) && str_ends(name, STR(".jsonl")) && name.n < AUDIT_FILE_NAME)
      vec_push(&out->names, xstrdup(e->d_name));
  }
  if (out->names.n)
    qsort(out->names.p, out->names.n, sizeof(*out->names.p), by_name);
  if (current)
    vec_push(&out->names, xstrdup(current_name));
  return 0;
}

void audit_names_free(struct audit_names *n)
{
  for (size_t i = 0; i < n->names.n; i++)
    free(n->names.p[i]);
  vec_free(&n->names);
}

/* What a crash or a full disk left without its end. */
static int close_line(struct audit_file *f)
{
  char last;
  if (!f->size || pread(f->fd, &last, 1, (off_t)f->size - 1) != 1 || last == '\n')
    return 0;
  if (write(f->fd, "\n", 1) != 1)
    return -errno;
  f->size++;
  return 0;
}

static int open_current(struct audit_file *f)
{
  struct stat st;
  char name[AUDIT_FILE_NAME];
  audit_file_current(f->set, name);
  f->fd = openat(f->dir, name, O_RDWR | O_APPEND | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
  if (f->fd < 0 || fstat(f->fd, &st))
    return -errno;
  f->size = (uint64_t)st.st_size;
  return close_line(f);
}

int audit_file_open(struct audit_file *f, struct err *err)
{
  int r = open_current(f);
  return r ? err_set(err, r, "audit log: %s", strerrordesc_np(-r)) : 0;
}

static void remove_oldest(const struct audit_file *f, unsigned files)
{
  struct audit_names all = {0};
  audit_file_names(f->dir, f->set, &all);
  for (size_t i = 0; i + files < all.names.n; i++)
    unlinkat(f->dir, all.names.p[i], 0);
  audit_names_free(&all);
}

/* Names go by time; a clock that was set back must not make a newer file the oldest, so a number follows the latest
 * name. */
static void full_name(const struct audit_file *f, char out[AUDIT_FILE_NAME])
{
  struct audit_names all = {0};
  char start[AUDIT_FILE_NAME];
  struct str prefix = full_prefix(f->set, start);
  uint64_t last = 0, stamp = (uint64_t)clock_wall_us();
  audit_file_names(f->dir, f->set, &all);
  for (size_t i = 0; i < all.names.n; i++) {
    struct str head, number = str_skip(str_of(all.names.p[i]), prefix.n), rest;
    str_cut(number, '.', &head, &rest);
    uint64_t n = 0;
    last = !str_u64(head, &n) ? MAX(last, n) : last;
  }
  audit_names_free(&all);
  snprintf(out, AUDIT_FILE_NAME, STR_FMT "%020llu.jsonl", STR_ARG(prefix), (unsigned long long)MAX(stamp, last + 1));
}

static int rotate(struct audit_file *f, unsigned files)
{
  char name[AUDIT_FILE_NAME], current[AUDIT_FILE_NAME];
  full_name(f, name);
  audit_file_current(f->set, current);
  if (renameat(f->dir, current, f->dir, name))
    return -errno;
  close(f->fd);
  f->fd = -1;
  remove_oldest(f, files - 1);
  return open_current(f);
}

int audit_file_add(struct audit_file *f, struct str line, uint64_t most, unsigned files)
{
  int r = f->fd < 0 ? open_current(f) : 0;
  if (!r && f->size && f->size + line.n > most)
    r = rotate(f, MAX(files, 1u));
  if (r)
    return r;
  ssize_t k = write(f->fd, line.p, line.n);
  if (k == (ssize_t)line.n) {
    f->size += line.n;
    return 0;
  }
  r = k < 0 ? -errno : -ENOSPC;
  if (k > 0 && ftruncate(f->fd, (off_t)f->size))
    f->size += (uint64_t)k, close_line(f);
  return r;
}

void audit_file_close(struct audit_file *f)
{
  if (f->fd >= 0)
    close(f->fd);
  f->fd = -1;
}
