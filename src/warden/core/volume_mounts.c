/* SPDX-License-Identifier: Apache-2.0 */
/* volume_mounts.c - see volume_mounts.h. */
#include "warden/core/volume_mounts.h"

#include "warden/core/warden_state.h"
#include "warden/db/volume_store.h"
#include "wire/wire.h"
#include <stdarg.h>
#include <stdio.h>

#define FAULTS_MAX 440 /* bytes of the text that lists what is wrong */

struct mount_line {
  struct str id, name, path;
};

static bool next_line(struct str *rest, struct mount_line *m)
{
  struct str line, more;
  if (!rest->n)
    return false;
  str_cut(*rest, '\n', &line, rest);
  str_cut(line, '\t', &m->id, &more);
  str_cut(more, '\t', &m->name, &m->path);
  return true;
}

static bool same_or_below(struct str path, struct str above)
{
  return str_starts(path, above) && (path.n == above.n || path.p[above.n] == '/');
}

/* ---- what a create asks for ---- */

struct resolving {
  struct warden *warden;
  struct str team;
  struct buf *out, *faults;
  size_t n;
};

static void fault(struct resolving *s, const char *fmt, ...) PRINTF_LIKE(2, 3);
static void fault(struct resolving *s, const char *fmt, ...)
{
  char text[FAULTS_MAX];
  va_list ap;
  va_start(ap, fmt);
  vsnprintf(text, sizeof(text), fmt, ap);
  va_end(ap);
  if (s->faults->n)
    buf_addz(s->faults, "; ");
  buf_addz(s->faults, text);
}

static void put_line(struct resolving *s, const char *id, struct str name, struct str path)
{
  buf_addf(s->out, "%s\t" STR_FMT "\t" STR_FMT "\n", id, STR_ARG(name), STR_ARG(path));
  s->n++;
}

/* A snapshot that was made public is no way to another team's volume. */
static void inherit(struct resolving *s, const char *lines)
{
  struct str rest = str_of(lines ? lines : "");
  for (struct mount_line m; next_line(&rest, &m);) {
    struct row_volume v;
    int r = store_volume_get(s->warden->store, m.id, &v);
    if (r || v.state != VOLUME_READY)
      fault(s, "the snapshot mounts volume '" STR_FMT "' at '" STR_FMT "', which was deleted", STR_ARG(m.name),
            STR_ARG(m.path));
    else if (!str_is(s->team, v.team))
      fault(s, "the snapshot mounts volume '" STR_FMT "' at '" STR_FMT "', which is another team's", STR_ARG(m.name),
            STR_ARG(m.path));
    else
      put_line(s, v.id, m.name, m.path);
  }
}

/* 1: there is the same already. -EEXIST: another one is in its way, `m`. */
static int look_before(const struct resolving *s, const char *id, struct str path, struct mount_line *m)
{
  struct str rest = buf_str(s->out);
  while (next_line(&rest, m)) {
    if (str_eq(m->path, path) && str_is(m->id, id))
      return 1;
    if (same_or_below(m->path, path) || same_or_below(path, m->path))
      return -EEXIST;
  }
  return 0;
}

static void add_asked(struct resolving *s, struct str name, struct str path)
{
  struct row_volume v;
  struct mount_line m;
  if (store_volume_by_name(s->warden->store, s->team, name, &v)) {
    fault(s, "there is no volume '" STR_FMT "' (for '" STR_FMT "')", STR_ARG(name), STR_ARG(path));
    return;
  }
  int r = look_before(s, v.id, path, &m);
  if (r == -EEXIST)
    fault(s, "volume '" STR_FMT "' can't be mounted at '" STR_FMT "': '" STR_FMT "' has volume '" STR_FMT "'",
          STR_ARG(name), STR_ARG(path), STR_ARG(m.path), STR_ARG(m.name));
  else if (!r)
    put_line(s, v.id, name, path);
}

int volume_mounts_resolve(struct warden *w, const struct box_params *o, const char *inherited, struct buf *out,
                          struct err *err)
{
  struct str rest = o->mounts, line, name, path;
  if (!o->mounts.n && !o->mount_faults.n && (!inherited || !*inherited))
    return 0;
  cleanup_buf struct buf faults = BUF_INIT(FAULTS_MAX * 4);
  struct resolving s = {.warden = w, .team = o->team, .out = out, .faults = &faults};
  if (o->mount_faults.n)
    fault(&s, STR_FMT, STR_ARG(o->mount_faults));
  inherit(&s, inherited);
  while (rest.n) {
    str_cut(rest, '\n', &line, &rest);
    str_cut(line, '\t', &name, &path);
    add_asked(&s, name, path);
  }
  unsigned most = MIN(w->config->box_volumes_max, (unsigned)JAIL_VOLUMES_MAX);
  if (s.n > most)
    fault(&s, "%zu volumes are mounted, a sandbox may have %u (setting box_volumes_max)", s.n, most);
  if (buf_failed(out))
    fault(&s, "the list is longer than %d bytes", VOLUME_MOUNTS_BYTES);
  if (!faults.n && !buf_failed(&faults))
    return 0;
  struct str text = str_sub(buf_str(&faults), 0, FAULTS_MAX);
  return err_set(err, -EINVAL, "'volumeMounts' can't be used: " STR_FMT, STR_ARG(text));
}

/* ---- what a launch needs ---- */

struct volume_place volume_mounts_place(const struct warden *w)
{
  return (struct volume_place){.dir = w->config->volumes_dir,
                               .directory = w->config->volumes_directory,
                               .unmapped = w->config->volumes_unmapped};
}

void volume_mounts_spec(const struct warden *w, const char *lines, struct arena *a, struct jail_spec *spec)
{
  struct str rest = str_of(lines ? lines : "");
  if (!rest.n)
    return;
  struct volume_place *place = arena_alloc(a, sizeof(*place));
  struct jail_volume *volumes = arena_alloc(a, JAIL_VOLUMES_MAX * sizeof(*volumes));
  *place = volume_mounts_place(w);
  spec->volume_place = place;
  spec->volumes = volumes;
  for (struct mount_line m; spec->volumes_n < JAIL_VOLUMES_MAX && next_line(&rest, &m); spec->volumes_n++)
    volumes[spec->volumes_n] = (struct jail_volume){arena_z(a, m.id), arena_z(a, m.path)};
}

void volume_mounts_put(struct buf *packet, const char *lines)
{
  cleanup_buf struct buf b = BUF_INIT(VOLUME_MOUNTS_BYTES);
  struct str rest = str_of(lines ? lines : "");
  for (struct mount_line m; next_line(&rest, &m);)
    buf_addf(&b, STR_FMT "\t" STR_FMT "\n", STR_ARG(m.name), STR_ARG(m.path));
  if (b.n)
    wire_put(packet, W_MOUNTS, buf_str(&b));
}

struct volume_holds {
  VEC(char *) lines; /* owned */
};

void volume_mounts_hold(struct warden *w, const char *lines)
{
  if (!w->volume_holds)
    w->volume_holds = xcalloc(1, sizeof(*w->volume_holds));
  vec_push(&w->volume_holds->lines, xstrdup(lines));
}

void volume_mounts_release(struct warden *w, const char *lines)
{
  struct volume_holds *h = w->volume_holds;
  for (size_t i = 0; h && i < h->lines.n; i++)
    if (!strcmp(h->lines.p[i], lines)) {
      free(h->lines.p[i]);
      h->lines.p[i] = h->lines.p[--h->lines.n];
      return;
    }
}

/* Only the ids: names and paths are what a client chose. */
bool volume_mounts_have(const char *lines, const char *volume)
{
  struct str rest = str_of(lines ? lines : "");
  for (struct mount_line m; next_line(&rest, &m);)
    if (str_is(m.id, volume))
      return true;
  return false;
}

size_t volume_mounts_users(struct warden *w, const struct row_volume *volume, char id[BOX_ID_SIZE])
{
  void *value;
  size_t n = 0;
  for (size_t i = 0; w->volume_holds && i < w->volume_holds->lines.n; i++)
    if (volume_mounts_have(w->volume_holds->lines.p[i], volume->id)) {
      snprintf(id, BOX_ID_SIZE, "a build");
      n++;
    }
  for (size_t i = 0; map_next(&w->boxes, &i, NULL, &value);) {
    const struct box *b = value;
    if (strcmp(b->row.team, volume->team) != 0 || !volume_mounts_have(b->row.mounts, volume->id))
      continue;
    memcpy(id, b->row.id, sizeof(b->row.id));
    n++;
  }
  return n;
}
