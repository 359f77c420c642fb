/* names.c - keeper and worker. See names.h. */
#include "jail/net/dns_proxy.h"
#include "jail/net/dns_message.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>

#define PENDING_MAX 256 /* questions on their way to the resolver */
#define PENDING_BOX 16  /* of one box */
#define PATIENCE_US 5000000
#define OPEN_MIN    300u /* seconds an answered address stays open at least: programs keep addresses longer than they should */
#define OPEN_MAX    86400u
#define LIST_MAX    65536
#define KNOWN_MAX   4096

struct wish { /* worker -> keeper; the answer is one byte */
  uint32_t slot, address, seconds;
};

/* --- the keeper ----------------------------------------------------------------------------------------------- */

/* Addresses opened lately, so that every answer does not cost a call to nft. `list` tells one list of a slot from the
 * next: a new list starts with nothing open. */
struct known {
  uint32_t slot, address;
  struct timespec list;
  int64_t until_us;
};

static bool list_time(int dir, uint32_t slot, struct timespec *out)
{
  char name[16];
  struct stat st;
  snprintf(name, sizeof(name), "%u", slot);
  if (fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) || !S_ISREG(st.st_mode))
    return false;
  *out = st.st_mtim;
  return true;
}

static bool grant(const struct jail_net_config *config, int dir, names_open_fn *open_address, const struct wish *w)
{
  static struct known known[KNOWN_MAX];
  struct timespec list;
  if (w->slot >= JAIL_NET_SLOTS || w->seconds < OPEN_MIN || w->seconds > OPEN_MAX || !list_time(dir, w->slot, &list))
    return false;
  struct known *k = &known[(w->slot * 2654435761u ^ w->address * 40503u) % KNOWN_MAX];
  bool same = k->slot == w->slot && k->address == w->address && memcmp(&k->list, &list, sizeof(list)) == 0;
  if (same && k->until_us > clock_mono_us())
    return true;
  if (open_address(config, w->slot, w->address, w->seconds))
    return false;
  *k = (struct known){w->slot, w->address, list, clock_mono_us() + (int64_t)w->seconds * 500000};
  return true;
}

static void serve_worker(const struct jail_net_config *config, int dir, int sock, names_open_fn *open_address)
{
  struct wish w;
  for (;;) {
    ssize_t n = recv(sock, &w, sizeof(w), 0);
    if (n < 0 && errno == EINTR)
      continue;
    if (n != (ssize_t)sizeof(w))
      return;
    char yes = grant(config, dir, open_address, &w) ? 1 : 0;
    if (send(sock, &yes, 1, MSG_NOSIGNAL) != 1)
      return;
  }
}

static _Noreturn void worker_run(const struct jail_net_config *config, uint32_t resolver, int dir, int port, int keeper);

static _Noreturn void keeper_run(const struct jail_net_config *config, uint32_t resolver, int dir, int port, names_open_fn *open_address)
{
  prctl(PR_SET_NAME, "names-keeper");
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  for (;;) {
    int pair[2];
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair))
      _exit(1);
    pid_t worker = fork();
    if (worker == 0) {
      close(pair[0]);
      worker_run(config, resolver, dir, port, pair[1]);
    }
    close(pair[1]);
    if (worker > 0) {
      serve_worker(config, dir, pair[0], open_address);
      kill(worker, SIGKILL);
      waitpid(worker, NULL, 0);
    }
    close(pair[0]);
    nanosleep(&(struct timespec){.tv_nsec = 100000000}, NULL);
  }
}

/* --- the worker ----------------------------------------------------------------------------------------------- */

/* A question that waits for the resolver, on a socket of its own: port and number are new each time, so a stranger's
 * answer would have to guess both. */
struct pending {
  int fd; /* -1 = free */
  struct sockaddr_in from;
  uint32_t slot;
  struct dns_question ours; /* as sent on, with our number */
  uint16_t their_id;
  int64_t until_us;
};

static struct worker {
  const struct jail_net_config *config;
  uint32_t resolver;
  int dir, port, keeper;
  struct pending pending[PENDING_MAX];
} worker;

static void drop_rights(void)
{
  struct rlimit none = {0, 0}, files = {PENDING_MAX + 16, PENDING_MAX + 16};
  setrlimit(RLIMIT_NPROC, &none);
  setrlimit(RLIMIT_CORE, &none);
  setrlimit(RLIMIT_NOFILE, &files);
  setrlimit(RLIMIT_FSIZE, &none);
  if (syscall(SYS_setgroups, 0, NULL) || syscall(SYS_setresgid, NAMES_USER, NAMES_USER, NAMES_USER) ||
      syscall(SYS_setresuid, NAMES_USER, NAMES_USER, NAMES_USER) || prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
    _exit(1);
}

/* 1 on the list, 0 not on it, -1 the box has no list. */
static int listed(uint32_t slot, const char *name)
{
  static char text[LIST_MAX];
  char file[16];
  snprintf(file, sizeof(file), "%u", slot);
  cleanup_fd int fd = openat(worker.dir, file, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
  if (fd < 0)
    return -1;
  ssize_t n = read(fd, text, sizeof(text));
  return n < 0 ? 0 : dns_listed(str_make(text, (size_t)n), name);
}

static struct pending *find_room(uint32_t slot)
{
  struct pending *room = NULL;
  unsigned of_box = 0;
  for (size_t i = 0; i < PENDING_MAX; i++) {
    if (worker.pending[i].fd < 0)
      room = &worker.pending[i];
    else if (worker.pending[i].slot == slot)
      of_box++;
  }
  return of_box < PENDING_BOX ? room : NULL;
}

static int ask_resolver(uint8_t *m, size_t n)
{
  struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons(53), .sin_addr = {htonl(worker.resolver)}};
  cleanup_fd int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (fd < 0 || connect(fd, (struct sockaddr *)&to, sizeof(to)) || send(fd, m, n, 0) != (ssize_t)n)
    return -1;
  return steal_fd(&fd);
}

static void pass_on(uint8_t *m, size_t n, const struct dns_question *q, uint32_t slot, const struct sockaddr_in *from)
{
  struct pending *p = find_room(slot);
  if (!p)
    return; /* the box asks again */
  p->ours = *q;
  random_bytes(&p->ours.id, sizeof(p->ours.id));
  m[0] = (uint8_t)(p->ours.id >> 8);
  m[1] = (uint8_t)p->ours.id;
  p->fd = ask_resolver(m, n);
  p->from = *from;
  p->slot = slot;
  p->their_id = q->id;
  p->until_us = clock_mono_us() + PATIENCE_US;
}

static void take_question(void)
{
  uint8_t m[DNS_MESSAGE];
  struct sockaddr_in from;
  socklen_t len = sizeof(from);
  struct dns_question q;
  ssize_t n = recvfrom(worker.port, m, sizeof(m), MSG_DONTWAIT, (struct sockaddr *)&from, &len);
  if (n <= 0 || len != sizeof(from) || dns_question(m, (size_t)n, &q))
    return;
  uint32_t slot = ntohl(from.sin_addr.s_addr) - worker.config->pool - 16;
  if (slot >= JAIL_NET_SLOTS)
    return;
  if (listed(slot, q.name) == 1)
    pass_on(m, (size_t)n, &q, slot, &from);
  else
    sendto(worker.port, m, dns_refuse(m, &q), MSG_DONTWAIT, (struct sockaddr *)&from, sizeof(from));
}

static bool open_address(uint32_t slot, uint32_t address, uint32_t ttl)
{
  uint32_t seconds = MIN(MAX(ttl, OPEN_MIN), OPEN_MAX);
  struct wish w = {slot, address, seconds};
  char yes = 0;
  if (send(worker.keeper, &w, sizeof(w), MSG_NOSIGNAL) != (ssize_t)sizeof(w) || recv(worker.keeper, &yes, 1, 0) != 1)
    _exit(1); /* without a keeper there is nothing to do */
  return yes == 1;
}

static void take_answer(struct pending *p)
{
  uint8_t m[DNS_MESSAGE];
  struct dns_answer a;
  ssize_t n = recv(p->fd, m, sizeof(m), MSG_DONTWAIT);
  if (n < 0 && errno == EAGAIN)
    return;
  if (n > 0 && dns_answer(m, (size_t)n, &p->ours, &a))
    return; /* not ours, or broken: the real one may still come */
  if (n > 0 && listed(p->slot, p->ours.name) == 1) {
    for (size_t i = 0; i < a.count; i++)
      open_address(p->slot, a.address[i], a.ttl);
    m[0] = (uint8_t)(p->their_id >> 8);
    m[1] = (uint8_t)p->their_id;
    sendto(worker.port, m, (size_t)n, MSG_DONTWAIT, (struct sockaddr *)&p->from, sizeof(p->from));
  }
  close(p->fd);
  p->fd = -1;
}

static void worker_turn(void)
{
  struct pollfd fds[PENDING_MAX + 2] = {{.fd = worker.port, .events = POLLIN}, {.fd = worker.keeper}};
  struct pending *of[PENDING_MAX + 2] = {NULL};
  nfds_t n = 2;
  int64_t now = clock_mono_us();
  for (size_t i = 0; i < PENDING_MAX; i++) {
    struct pending *p = &worker.pending[i];
    if (p->fd >= 0 && p->until_us < now) {
      close(p->fd);
      p->fd = -1;
    }
    if (p->fd < 0)
      continue;
    fds[n] = (struct pollfd){.fd = p->fd, .events = POLLIN};
    of[n++] = p;
  }
  poll(fds, n, n > 2 ? 1000 : -1);
  if (fds[1].revents)
    _exit(0); /* the keeper is gone */
  for (nfds_t i = 2; i < n; i++)
    if (fds[i].revents)
      take_answer(of[i]);
  if (fds[0].revents)
    take_question();
}

static _Noreturn void worker_run(const struct jail_net_config *config, uint32_t resolver, int dir, int port, int keeper)
{
  prctl(PR_SET_NAME, "names");
  worker.config = config;
  worker.resolver = resolver;
  worker.dir = dir;
  worker.port = port;
  worker.keeper = keeper;
  for (size_t i = 0; i < PENDING_MAX; i++)
    worker.pending[i].fd = -1;
  drop_rights();
  prctl(PR_SET_PDEATHSIG, SIGKILL); /* a change of user clears it, so only now */
  for (;;)
    worker_turn();
}

/* --- the daemon's side ---------------------------------------------------------------------------------------- */

/* The gateway's address is there only while a box is; FREEBIND does not mind. */
static int bind_port(const struct jail_net_config *config, struct err *err)
{
  struct sockaddr_in sa = {.sin_family = AF_INET, .sin_port = htons(53)};
  sa.sin_addr.s_addr = htonl(jail_net_gateway(config));
  cleanup_fd int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  if (fd < 0 || setsockopt(fd, IPPROTO_IP, IP_FREEBIND, &(int){1}, sizeof(int)) || setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &(int){1}, sizeof(int)) ||
      bind(fd, (struct sockaddr *)&sa, sizeof(sa)))
    return err_errno(err, "opening the boxes' name server port");
  return steal_fd(&fd);
}

/* Everything else the daemon has open stays out of the keeper. */
static void close_others(int dir, int port)
{
  int low = MIN(dir, port), high = MAX(dir, port);
  syscall(SYS_close_range, 3, low - 1, 0);
  syscall(SYS_close_range, low + 1, high - 1, 0);
  syscall(SYS_close_range, high + 1, ~0u, 0);
}

int names_start(const struct jail_net_config *config, uint32_t resolver, names_open_fn *open_fn, struct err *err)
{
  if ((mkdir(config->names, 0755) && errno != EEXIST) || chmod(config->names, 0755))
    return err_errno(err, "making %s", config->names);
  cleanup_fd int dir = open(config->names, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (dir < 0)
    return err_errno(err, "opening %s", config->names);
  cleanup_fd int port = bind_port(config, err);
  if (port < 0)
    return port;
  pid_t pid = fork();
  if (pid == 0) {
    close_others(dir, port);
    keeper_run(config, resolver, dir, port, open_fn);
  }
  return pid < 0 ? err_errno(err, "starting the boxes' name server") : pid;
}

void names_stop(pid_t keeper)
{
  if (keeper <= 0)
    return;
  kill(keeper, SIGKILL); /* its worker goes with it */
  waitpid(keeper, NULL, 0);
}

/* Written aside and renamed, so that the worker reads a whole list or none. No fsync: after a crash of the host there is
 * no box to whom it would matter. */
static int write_aside(const char *path, const char *lines)
{
  char temp[PATH_MAX + 8];
  snprintf(temp, sizeof(temp), "%s.new", path);
  cleanup_fd int fd = open(temp, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  if (fd < 0 || fchmod(fd, 0644))
    return -errno;
  int r = fd_write_all(fd, lines, strlen(lines));
  return r ? r : rename(temp, path) ? -errno : 0;
}

int names_set(const char *dir, uint32_t slot, const char *lines, struct err *err)
{
  char path[PATH_MAX];
  if ((size_t)snprintf(path, sizeof(path), "%s/%u", dir, slot) >= sizeof(path))
    return err_set(err, -ENAMETOOLONG, "too long a name: %s", dir);
  if (!lines)
    return unlink(path) && errno != ENOENT ? err_errno(err, "removing %s", path) : 0;
  int r = write_aside(path, lines);
  return r ? err_set(err, r, "writing %s: %s", path, strerrordesc_np(-r)) : 0;
}
