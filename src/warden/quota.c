/* account.c - see account.h. The rate is a bucket that holds two seconds' worth of creates. */
#include "warden/quota.h"

struct account {
  size_t running;
  double tokens;
  int64_t at_us; /* of the last look at the bucket; 0 = never */
};

static struct account *account_of(struct warden *w, struct str team)
{
  struct account *a = map_get(&w->accounts, team);
  if (!a) {
    a = xcalloc(1, sizeof(*a));
    map_put(&w->accounts, team, a);
  }
  return a;
}

static unsigned limit(const struct row_team *t, uint32_t of_team, unsigned of_server)
{
  return t && of_team ? of_team : of_server;
}

unsigned account_timeout_max(struct warden *w, struct str team)
{
  const struct row_team *t = catalog_team(w->catalog, team);
  return limit(t, t ? t->timeout_max_s : 0, w->config->timeout_max_s);
}

unsigned account_boxes_max(struct warden *w, struct str team)
{
  const struct row_team *t = catalog_team(w->catalog, team);
  return limit(t, t ? t->boxes_max : 0, w->config->team_boxes_max);
}

size_t account_running(struct warden *w, struct str team)
{
  struct account *a = map_get(&w->accounts, team);
  return a ? a->running : 0;
}

void account_count(struct box *b, bool running)
{
  if (b->counted == running)
    return;
  struct account *a = account_of(b->warden, str_of(b->row.team));
  b->counted = running;
  a->running += running ? 1 : -(size_t)1;
}

/* Takes a token, or says how long until there is one. */
static int take_token(struct account *a, unsigned per_second, unsigned *retry_s)
{
  int64_t now = clock_mono_us();
  double full = 2.0 * per_second;
  a->tokens = a->at_us ? MIN(full, a->tokens + (double)(now - a->at_us) * per_second / 1e6) : full;
  a->at_us = now;
  if (a->tokens >= 1) {
    a->tokens -= 1;
    return 0;
  }
  *retry_s = 1 + (unsigned)((1 - a->tokens) / per_second);
  return -EDQUOT;
}

int account_admit(struct warden *w, struct str team, bool create, unsigned *retry_s, struct err *err)
{
  const struct row_team *t = catalog_team(w->catalog, team);
  struct account *a = account_of(w, team);
  unsigned boxes = account_boxes_max(w, team);
  unsigned rate = limit(t, t ? t->creates_per_s : 0, w->config->team_creates_per_s);
  if (boxes && a->running >= boxes)
    return err_set(err, -EAGAIN, "you have reached the maximum number of concurrent sandboxes (%u) of your team; kill or pause some first", boxes);
  if (create && rate && take_token(a, rate, retry_s))
    return err_set(err, -EDQUOT, "your team may create %u sandboxes per second; try again in %u s", rate, *retry_s);
  return 0;
}

int account_fits(struct warden *w, struct str team, const struct build *b, struct err *err)
{
  const struct row_team *t = catalog_team(w->catalog, team);
  const struct {
    const char *what;
    unsigned has, most;
  } sizes[] = {{"vCPUs", b->row.cpus, t ? t->cpus_max : 0},
               {"MiB of memory", b->row.memory_mb, t ? t->memory_max_mb : 0},
               {"MiB of disk", b->row.disk_mb, t ? t->disk_max_mb : 0}};
  for (size_t i = 0; i < ARRAY_LEN(sizes); i++)
    if (sizes[i].most && sizes[i].has > sizes[i].most)
      return err_set(err, -EINVAL, "the template needs %u %s; your team may use %u", sizes[i].has, sizes[i].what, sizes[i].most);
  return 0;
}

void accounts_free(struct warden *w)
{
  void *a;
  for (size_t i = 0; map_next(&w->accounts, &i, NULL, &a);)
    free(a);
  map_free(&w->accounts);
}
