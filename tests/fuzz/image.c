/* SPDX-License-Identifier: Apache-2.0 */
/* image.c - archives, the JSON of images, and their names. The first byte chooses; archives must read the same in one
 * piece and in small ones, and what was read and written again must read the same once more. */
#include "must.h"

#include "unpack/oci_image.h"
#include "unpack/tar_write.h"
#include "warden/build/source_name.h"

#include <stdio.h>

struct seen {
  struct buf text, again; /* what was told, and an archive of it */
  uint64_t left;
  bool open;
};

static int on_entry(void *arg, const struct tar_entry *e)
{
  struct seen *s = arg;
  MUST(!s->open && e->name.n > 0 && e->name.n <= TAR_NAME_MAX && e->link.n <= TAR_NAME_MAX && e->mode <= 07777);
  MUST(!memchr(e->name.p, 0, e->name.n));
  s->open = e->kind == TAR_FILE;
  s->left = e->size;
  buf_addf(&s->text, "%d %o %llu %llu %lld %llu %zu:", e->kind, e->mode, (unsigned long long)e->uid,
           (unsigned long long)e->gid, (long long)e->mtime, (unsigned long long)e->size, e->nxattrs);
  buf_adds(&s->text, e->name);
  buf_addc(&s->text, '>');
  buf_adds(&s->text, e->link);
  for (size_t i = 0; i < 2 * e->nxattrs; i++)
    buf_adds(&s->text, e->xattrs[i]);
  if (e->kind != TAR_DEVICE)
    tar_write_header(&s->again, e);
  return 0;
}

static int on_data(void *arg, struct str piece)
{
  struct seen *s = arg;
  MUST(s->open && piece.n <= s->left);
  s->left -= piece.n;
  buf_adds(&s->again, piece);
  return buf_adds(&s->text, piece);
}

static int on_end(void *arg)
{
  struct seen *s = arg;
  MUST(s->open && s->left == 0);
  s->open = false;
  size_t odd = s->again.n % 512;
  for (size_t i = odd; i && i < 512; i++)
    buf_addc(&s->again, 0);
  return buf_addc(&s->text, 'E');
}

static const struct tar_ops ops = {on_entry, on_data, on_end};

static int read_in(struct str in, size_t piece, struct seen *s)
{
  struct err err;
  struct tar *t = tar_new(&ops, s);
  int r = 0;
  buf_init(&s->text, (size_t)16 << 20);
  buf_init(&s->again, (size_t)16 << 20);
  for (size_t at = 0; !r && at < in.n; at += piece)
    r = tar_feed(t, str_sub(in, at, piece), &err);
  r = r ? r : tar_finish(t, &err);
  tar_free(t);
  return r;
}

static void seen_free(struct seen *s)
{
  buf_free(&s->text);
  buf_free(&s->again);
}

static void try_tar(struct str in, size_t piece)
{
  struct seen whole = {0}, cut = {0}, again = {0};
  int a = read_in(in, in.n ? in.n : 1, &whole), b = read_in(in, piece, &cut);
  MUST(a == b && str_eq(buf_str(&whole.text), buf_str(&cut.text)));
  if (!a && !buf_failed(&whole.again)) {
    tar_write_end(&whole.again);
    MUST(read_in(buf_str(&whole.again), 4096, &again) == 0);
  }
  seen_free(&whole);
  seen_free(&cut);
  seen_free(&again);
}

static void try_json(struct str in)
{
  cleanup_arena struct arena a = ARENA_INIT((size_t)8 << 20);
  cleanup_buf struct buf out = BUF_INIT(IMAGE_RESULT_MAX);
  struct image_manifest m = {0};
  char digest[65], (*diffs)[65] = NULL;
  size_t n = 0;
  struct err err;
  if (!image_index(in, digest, &err))
    MUST(strlen(digest) == 64);
  if (!image_manifest(&a, in, &m, &err))
    for (size_t i = 0; i < m.n; i++)
      MUST(strlen(m.layers[i]) == 64);
  if (!image_config(&a, in, &out, &diffs, &n, &err)) {
    struct json *j = json_read(&a, buf_str(&out), 0, NULL);
    MUST(json_is(j, JSON_OBJECT) && json_is(json_get(j, "env"), JSON_OBJECT) && n <= IMAGE_LAYERS_MAX);
  }
}

static void try_name(struct str in)
{
  struct source_name n;
  struct err err;
  if (source_name_read(in, &n, &err))
    return;
  MUST(n.transport[0] && n.rest[0]);
  MUST(strcmp(n.transport, "docker") || (n.host[0] && n.rest[0] != '-' && !strpbrk(n.rest, " \t\n\"'$`;&|<>\\")));
  source_host_listed("a.example *.b.example 127.0.0.1:*", n.host);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
  if (size < 2)
    return 0;
  struct str in = str_make(data + 1, size - 1);
  if (data[0] >= 250)
    try_name(in);
  else if (data[0] >= 200)
    try_json(in);
  else
    try_tar(in, (size_t)data[0] % 97 + 1);
  return 0;
}
