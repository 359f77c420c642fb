/* birth.c - see birth.h. The worker sees only copies: the loop may end the box meanwhile. */
#include "warden/birth.h"

#include "warden/boot.h"
#include <poll.h>
#include <stdio.h>
#include <sys/socket.h>

static void boot_field(struct buf *b, enum boot_tag tag, struct str value)
{
  buf_add(b, &(struct boot_field){tag, (uint32_t)value.n}, sizeof(struct boot_field));
  buf_adds(b, value);
}

static void boot_packet(struct birth *h, const struct box *b)
{
  buf_init(&h->boot, BOOT_MAX);
  boot_field(&h->boot, BOOT_BOX_ID, str_of(b->row.id));
  boot_field(&h->boot, BOOT_TEMPLATE_ID, str_of(b->row.template_id));
  boot_field(&h->boot, BOOT_BUILD_ID, str_of(b->row.build));
  boot_field(&h->boot, BOOT_SECRET, str_of(b->row.secret));
  boot_field(&h->boot, BOOT_TEMPLATE, str_of(b->build->row.config));
  boot_field(&h->boot, BOOT_INIT, str_of(b->row.init));
}

/* Layer paths, the runtime layer below them all. */
static const char *const *lowers(struct birth *h, const struct box *b)
{
  const char *text = b->build->row.layers;
  size_t n = 2;
  for (const char *p = text; *p; p++)
    n += *p == '\n';
  const char **list = arena_alloc(&h->arena, n * sizeof(*list));
  struct str rest = str_of(text), line;
  size_t i = 0;
  for (; rest.n; i++) {
    str_cut(rest, '\n', &line, &rest);
    list[i] = arena_z(&h->arena, line);
  }
  list[i] = arena_fmt(&h->arena, "%s/runtime/%s", b->warden->config->data, b->row.runtime);
  return list;
}

static const char *const *environment(struct birth *h, const struct box *b)
{
  const char **env = arena_alloc(&h->arena, 5 * sizeof(*env));
  env[0] = "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";
  env[1] = arena_fmt(&h->arena, "CLOCHE_MEMORY=%llu", (unsigned long long)b->row.memory_mb << 20);
  env[2] = arena_fmt(&h->arena, "CLOCHE_CPUS=%u", b->row.cpus);
  env[3] = arena_fmt(&h->arena, "CLOCHE_DISK=%llu", (unsigned long long)b->row.disk_mb << 20);
  return env;
}

static int wait_ready(struct birth *h, int fd)
{
  char word[512];
  struct pollfd p = {.fd = fd, .events = POLLIN};
  int k;
  do
    k = poll(&p, 1, BIRTH_READY_MS);
  while (k < 0 && errno == EINTR);
  if (k == 0)
    return err_set(&h->err, -ETIMEDOUT, "the agent did not answer within %d s", BIRTH_READY_MS / 1000);
  ssize_t n = recv(fd, word, sizeof(word) - 1, 0);
  if (n >= 1 && word[0] == BOOT_READY)
    return 0;
  if (n >= 1 && word[0] == BOOT_FAILED) {
    word[n] = 0;
    return err_set(&h->err, -EIO, "the agent could not start: %s", word + 1);
  }
  return err_set(&h->err, -EIO, "the agent ended before it was ready");
}

static int give_birth(struct birth *h)
{
  int pair[2];
  if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair))
    return err_errno(&h->err, "socketpair");
  cleanup_fd int ours = pair[0], theirs = pair[1];
  int size = BOOT_MAX * 2;
  setsockopt(ours, SOL_SOCKET, SO_SNDBUFFORCE, &size, sizeof(size));
  h->spec.boot_fd = theirs;
  ssize_t sent = fd_send(ours, h->boot.p, h->boot.n, NULL, 0, 0);
  if (sent < 0)
    return err_set(&h->err, (int)sent, "boot packet of %zu bytes not sent: %s", h->boot.n, strerrordesc_np((int)-sent));
  int r = jail_spawn(&h->spec, &h->jail, &h->err);
  if (r)
    return r;
  close(steal_fd(&theirs));
  return wait_ready(h, ours);
}

static void birth_work(uv_work_t *work)
{
  struct birth *h = work->data;
  h->jail.pidfd = h->jail.netns = -1;
  h->result = buf_failed(&h->boot) ? err_set(&h->err, -E2BIG, "variables and settings of the sandbox exceed %u bytes", BOOT_MAX) : give_birth(h);
}

static void birth_done(uv_work_t *work, int status)
{
  struct birth *h = work->data;
  h->done(h);
  buf_free(&h->boot);
  arena_free(&h->arena);
  free(h);
}

void birth_start(struct box *b, void (*done)(struct birth *))
{
  static const char *const argv[] = {"/usr/lib/cloche/agent", NULL};
  struct warden *w = b->warden;
  struct birth *h = xcalloc(1, sizeof(*h));
  h->box = b;
  h->done = done;
  boot_packet(h, b);
  h->spec = (struct jail_spec){
      .instance = w->instance,
      .id = arena_z(&h->arena, str_of(b->name)),
      .dir = arena_z(&h->arena, str_of(b->dir)),
      .lowers = lowers(h, b),
      .id_base = w->config->id_base + b->row.slot * JAIL_IDS,
      .hostname = "e2b.local",
      .argv = argv,
      .env = environment(h, b),
      .limits = {.cpus = b->row.cpus,
                 .memory = (uint64_t)b->row.memory_mb << 20,
                 .disk = (uint64_t)b->row.disk_mb << 20,
                 .pids = w->config->pids_max,
                 .open_files = w->config->open_files},
  };
  h->work.data = h;
  uv_queue_work(w->loop, &h->work, birth_work, birth_done);
}
