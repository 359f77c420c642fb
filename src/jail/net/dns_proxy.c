/* SPDX-License-Identifier: Apache-2.0 */
/* dns_proxy.c - keeper and worker. See dns_proxy.h. */
#include "jail/net/dns_proxy.h"
#include "jail/net/net_process.h"
#include "jail/net/dns_message.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/inotify.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>

/* Questions on their way to a name server or their addresses to the keeper. Servers that a box chose, and those of
 * names that it asks for, may never answer: so there are two for each of as many boxes as a server has by default
 * (boxes_max), and no box waits for places that others hold. */
#define PENDING_MAX 4096
#define PENDING_BOX 16 /* of one box */
#define OPENING_BOX 2  /* of those, with the keeper at once */
#define SPARE_FILES 32
#define QUESTIONS   64 /* taken in one turn */
#define SWEEP_US    100000
#define PATIENCE_US 5000000
#define NEXT_US     1000000 /* of silence, and the next name server is asked */
/* Seconds an answered address stays open at least: programs keep addresses longer than they should */
#define OPEN_MIN    300u
#define OPEN_MAX    14400u
#define SLOT_NAME   16 /* the file with the list of a slot: its number */
#define LIST_MAX    65536
#define KNOWN_MAX   4096
#define BATCH       32   /* openings in one transaction */
#define FRESH_MOST  1024 /* new addresses of a slot at once */
/* And then by the second: so many, OPEN_MAX long, are what the kernel holds for a box at most */
#define FRESH_PER_S 8
#define PENALTY_US  5000000  /* a slot whose opening the kernel refused is not tried again for so long */
#define DEAF_MAX    1024     /* boxes without a name server whose names are looked up for them */
#define DEAF_NAMES  32       /* of one box */
#define DEAF_US     30000000 /* between two rounds of a box's names; far less than OPEN_MIN */

_Static_assert(DNS_OPENING_MAX == DNS_ADDRESSES, "an answer is opened as a whole");

struct verdict { /* keeper -> worker */
  uint32_t id, yes;
};

/* --- the keeper ----------------------------------------------------------------------------------------------- */

/* Addresses opened lately, so that the same answer costs no second call to nft. `list` tells one list of a slot from
 * the next: a new list starts with nothing open. */
struct known {
  uint32_t slot, address;
  struct timespec list;
  int64_t until_us;
};

static bool list_time(int dir, uint32_t slot, struct timespec *out)
{
  char name[SLOT_NAME];
  struct stat st;
  snprintf(name, sizeof(name), "%u", slot);
  if (fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) || !S_ISREG(st.st_mode))
    return false;
  *out = st.st_mtim;
  return true;
}

static struct known known[KNOWN_MAX];

static struct known *known_of(uint32_t slot, uint32_t address)
{
  return &known[(slot * 2654435761u ^ address * 40503u) % KNOWN_MAX];
}

static bool is_open(uint32_t slot, uint32_t address, const struct timespec *list)
{
  const struct known *k = known_of(slot, address);
  return k->slot == slot && k->address == address && memcmp(&k->list, list, sizeof(*list)) == 0 &&
         k->until_us > clock_mono_us();
}

/* What a slot may still open, and when it may at all. */
static struct account {
  struct timespec list;
  float fresh;
  int64_t at_us, penalty_us;
} accounts[JAIL_NET_SLOTS];

static bool spend(uint32_t slot, const struct timespec *list, uint32_t count)
{
  struct account *a = &accounts[slot];
  int64_t now = clock_mono_us();
  if (!a->at_us || memcmp(&a->list, list, sizeof(*list)))
    *a = (struct account){.list = *list, .fresh = FRESH_MOST, .at_us = now};
  a->fresh = MIN((float)FRESH_MOST, a->fresh + (float)(now - a->at_us) * FRESH_PER_S / 1e6f);
  a->at_us = now;
  if (now < a->penalty_us || a->fresh < (float)count)
    return false;
  a->fresh -= (float)count;
  return true;
}

static bool among(const uint32_t *list, uint32_t n, uint32_t address)
{
  for (uint32_t i = 0; i < n; i++)
    if (list[i] == address)
      return true;
  return false;
}

/* What the worker asked for, less what is open already. False: nothing of it may be opened. */
static bool examine(int dir, struct dns_opening *o)
{
  struct timespec list;
  uint32_t n = 0;
  if (o->slot >= JAIL_NET_SLOTS || o->seconds < OPEN_MIN || o->seconds > OPEN_MAX || o->count > DNS_OPENING_MAX ||
      !list_time(dir, o->slot, &list))
    return false;
  for (uint32_t i = 0; i < o->count; i++)
    if (!is_open(o->slot, o->address[i], &list) && !among(o->address, n, o->address[i]))
      o->address[n++] = o->address[i];
  o->count = n;
  return n == 0 || spend(o->slot, &list, n);
}

static void remember(int dir, const struct dns_opening *o)
{
  struct timespec list;
  if (!list_time(dir, o->slot, &list))
    return;
  for (uint32_t i = 0; i < o->count; i++)
    *known_of(o->slot, o->address[i]) =
        (struct known){o->slot, o->address[i], list, clock_mono_us() + (int64_t)o->seconds * 500000};
}

/* One transaction for all; where it fails, one for each, so that only those fail that must. */
static void open_batch(const struct jail_net_config *config, dns_proxy_open_fn *open_fn, struct dns_opening *list,
                       bool *yes, size_t n)
{
  struct dns_opening fresh[BATCH];
  size_t at[BATCH], k = 0;
  for (size_t i = 0; i < n; i++)
    if (yes[i] && list[i].count) {
      at[k] = i;
      fresh[k++] = list[i];
    }
  if (!k || open_fn(config, fresh, k) == 0)
    return;
  for (size_t i = 0; i < k; i++) {
    yes[at[i]] = accounts[fresh[i].slot].penalty_us <= clock_mono_us() && open_fn(config, &fresh[i], 1) == 0;
    if (!yes[at[i]])
      accounts[fresh[i].slot].penalty_us = clock_mono_us() + PENALTY_US;
  }
}

/* Whatever has come by now; false when the worker is gone. */
static bool take_batch(int sock, struct dns_opening *list, size_t *n)
{
  for (*n = 0; *n < BATCH;) {
    ssize_t k = recv(sock, &list[*n], sizeof(*list), *n ? MSG_DONTWAIT : 0);
    if (k < 0 && errno == EINTR)
      continue;
    if (k < 0 && errno == EAGAIN && *n)
      return true;
    if (k != (ssize_t)sizeof(*list))
      return false;
    ++*n;
  }
  return true;
}

static void serve_worker(const struct jail_net_config *config, int dir, int sock, dns_proxy_open_fn *open_fn)
{
  struct dns_opening list[BATCH];
  bool yes[BATCH];
  size_t n;
  while (take_batch(sock, list, &n)) {
    for (size_t i = 0; i < n; i++)
      yes[i] = examine(dir, &list[i]);
    open_batch(config, open_fn, list, yes, n);
    for (size_t i = 0; i < n; i++) {
      struct verdict v = {list[i].id, yes[i]};
      if (yes[i])
        remember(dir, &list[i]);
      if (send(sock, &v, sizeof(v), MSG_NOSIGNAL) != (ssize_t)sizeof(v))
        return;
    }
  }
}

static _Noreturn void worker_run(const struct jail_net_config *config, uint32_t resolver, int dir, int port,
                                 int keeper);

static _Noreturn void keeper_run(const struct jail_net_config *config, uint32_t resolver, int dir, int port,
                                 dns_proxy_open_fn *open_address)
{
  prctl(PR_SET_NAME, "dns-keeper");
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
 * answer would have to guess both. Then its answer, which waits for its addresses to be open. */
struct pending {
  enum pending_state { FREE, ASKED, ANSWERED, OPENING } state;
  int fd; /* ASKED */
  uint32_t slot, servers_left;
  int64_t until_us, next_us;
};

/* The rest of it, apart: what is looked through for all of them at once is small. */
struct pending_more {
  struct sockaddr_in from;
  struct dns_question ours; /* as sent on, with our number */
  uint16_t their_id;
  bool own;                           /* the worker's own question: nobody waits for the answer */
  uint32_t servers[JAIL_NET_DNS_MAX]; /* yet to be asked, should the present one be silent */
  size_t query_size, size;
  struct dns_opening opening; /* ANSWERED, OPENING */
  uint8_t query[DNS_MESSAGE], answer[DNS_MESSAGE];
};

static struct worker {
  const struct jail_net_config *config;
  uint32_t resolver;
  int dir, port, keeper;
  int events; /* epoll: of these, and of every question's socket */
  uint32_t last_id;
  size_t places; /* at most PENDING_MAX: as many as there are descriptors for */
  size_t busy, answered;
  size_t first; /* to be looked at for what the keeper may be asked next */
  int64_t sweep_us;
  uint8_t held[JAIL_NET_SLOTS], opening[JAIL_NET_SLOTS]; /* by each box */
  struct pending pending[PENDING_MAX];
  struct pending_more more[PENDING_MAX];
  int changes; /* inotify of dir */
  struct deaf {
    uint32_t slot, name; /* the next to be looked up */
    int64_t at_us;
  } deaf[DEAF_MAX];
  size_t deaf_count;
} worker;

static void drop_rights(void)
{
  struct rlimit none = {0, 0}, files = {PENDING_MAX + SPARE_FILES, PENDING_MAX + SPARE_FILES}, have;
  if (getrlimit(RLIMIT_NOFILE, &have))
    _exit(1);
  files.rlim_cur = files.rlim_max = MIN(files.rlim_max, have.rlim_max);
  setrlimit(RLIMIT_NOFILE, &files);
  worker.places = files.rlim_max > SPARE_FILES ? (size_t)files.rlim_max - SPARE_FILES : 1;
  setrlimit(RLIMIT_FSIZE, &none);
  net_process_drop_rights();
}

struct list {
  bool chosen; /* it has a line of name servers */
  uint32_t servers[JAIL_NET_DNS_MAX];
  size_t count;
  struct str names; /* until the next list is read */
};

static void read_servers(struct str line, struct list *l)
{
  struct str word;
  char text[INET_ADDRSTRLEN];
  struct in_addr a;
  l->chosen = true;
  for (line = str_skip(line, strlen(DNS_PROXY_SERVERS)); line.n;) {
    str_cut(line, ' ', &word, &line);
    if (!str_copyz(word, text, sizeof(text)) && inet_pton(AF_INET, text, &a) == 1 && l->count < JAIL_NET_DNS_MAX)
      l->servers[l->count++] = ntohl(a.s_addr);
  }
}

/* False when the box has no list. */
static bool read_list(uint32_t slot, struct list *l)
{
  static char text[LIST_MAX];
  char file[SLOT_NAME];
  struct str line;
  *l = (struct list){0};
  snprintf(file, sizeof(file), "%u", slot);
  cleanup_fd int fd = openat(worker.dir, file, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
  ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof(text));
  if (n < 0)
    return false;
  l->names = str_make(text, (size_t)n);
  if (str_starts(l->names, STR(DNS_PROXY_SERVERS))) {
    str_cut(l->names, '\n', &line, &l->names);
    read_servers(line, l);
  }
  return true;
}

static struct pending_more *more_of(const struct pending *p)
{
  return &worker.more[p - worker.pending];
}

/* Every change of a place goes through here: the counts follow. */
static void set_state(struct pending *p, enum pending_state state)
{
  if (p->state == ASKED)
    close(p->fd);
  worker.busy += (state != FREE) - (p->state != FREE);
  worker.answered += (state == ANSWERED) - (p->state == ANSWERED);
  worker.held[p->slot] += (state != FREE) - (p->state != FREE);
  worker.opening[p->slot] += (state == OPENING) - (p->state == OPENING);
  p->state = state;
}

static void drop(struct pending *p)
{
  set_state(p, FREE);
}

/* Of the box that has the most, the question that has waited longest. */
static struct pending *to_give_way(void)
{
  struct pending *found = NULL;
  unsigned most = 0;
  for (size_t i = 0; i < worker.places; i++) {
    struct pending *p = &worker.pending[i];
    unsigned n = p->state == FREE ? 0 : worker.held[p->slot];
    if (n > most || (n && n == most && p->until_us < found->until_us)) {
      most = n;
      found = p;
    }
  }
  return found;
}

/* When there is no room left, the box that has the most of it gives way to one that has less; where all have one, one
 * that was silent for so long that it hardly comes to anything gives way to a box that has none. */
static struct pending *find_room(uint32_t slot)
{
  unsigned own = worker.held[slot];
  if (own >= PENDING_BOX)
    return NULL;
  for (size_t i = 0; worker.busy < worker.places && i < worker.places; i++)
    if (worker.pending[i].state == FREE)
      return &worker.pending[i];
  struct pending *p = to_give_way();
  if (!p)
    return NULL;
  bool silent = p->state == ASKED && p->until_us - PATIENCE_US + NEXT_US < clock_mono_us();
  if (worker.held[p->slot] <= own + 1 && (own || !silent))
    return NULL;
  drop(p);
  return p;
}

/* What is sent to an address of the host's own leaves from that same address. */
static bool is_local(int fd, uint32_t address)
{
  struct sockaddr_in own;
  socklen_t len = sizeof(own);
  return getsockname(fd, (struct sockaddr *)&own, &len) || ntohl(own.sin_addr.s_addr) == address;
}

/* A name server that a box chose is never the host itself; the resolver, which the operator chose, may be. */
static int ask_server(uint32_t server, const uint8_t *m, size_t n)
{
  struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons(53), .sin_addr = {htonl(server)}};
  cleanup_fd int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (fd < 0 || connect(fd, (struct sockaddr *)&to, sizeof(to)))
    return -1;
  if ((server != worker.resolver && is_local(fd, server)) || send(fd, m, n, 0) != (ssize_t)n)
    return -1;
  return steal_fd(&fd);
}

static bool watch(int fd, void *what)
{
  struct epoll_event e = {.events = EPOLLIN, .data.ptr = what};
  return !epoll_ctl(worker.events, EPOLL_CTL_ADD, fd, &e);
}

/* The first server that a question can be sent to; none: the question is forgotten. */
static void ask_next(struct pending *p)
{
  const struct pending_more *m = more_of(p);
  drop(p);
  while (p->servers_left > 0 && p->state == FREE) {
    cleanup_fd int fd = ask_server(m->servers[--p->servers_left], m->query, m->query_size);
    if (fd < 0 || !watch(fd, p))
      continue;
    set_state(p, ASKED);
    p->fd = steal_fd(&fd);
  }
  p->next_us = clock_mono_us() + NEXT_US;
}

/* To the servers of the list; the resolver's turn is a list of one. from: NULL for the worker's own question. */
static bool pass_on(const uint8_t *m, size_t n, const struct dns_question *q, uint32_t slot, const struct list *l,
                    const struct sockaddr_in *from)
{
  struct pending *p = find_room(slot);
  if (!p)
    return false; /* the box asks again */
  struct pending_more *more = more_of(p);
  more->ours = *q;
  random_bytes(&more->ours.id, sizeof(more->ours.id));
  memcpy(more->query, m, n);
  more->query_size = n;
  more->query[0] = (uint8_t)(more->ours.id >> 8);
  more->query[1] = (uint8_t)more->ours.id;
  p->servers_left = l->count ? (uint32_t)l->count : 1;
  more->servers[0] = worker.resolver;
  for (size_t i = 0; i < l->count; i++) /* taken from the end */
    more->servers[i] = l->servers[l->count - 1 - i];
  more->own = !from;
  more->from = from ? *from : (struct sockaddr_in){0};
  p->slot = slot;
  more->their_id = q->id;
  p->until_us = clock_mono_us() + PATIENCE_US;
  ask_next(p);
  return p->state == ASKED;
}

/* False: there is none. A box that has all its places costs no more than this look. */
static bool take_question(void)
{
  uint8_t m[DNS_MESSAGE];
  struct sockaddr_in from;
  socklen_t len = sizeof(from);
  struct dns_question q;
  ssize_t n = recvfrom(worker.port, m, sizeof(m), MSG_DONTWAIT, (struct sockaddr *)&from, &len);
  if (n < 0)
    return false;
  uint32_t slot = len == sizeof(from) ? ntohl(from.sin_addr.s_addr) - worker.config->pool - JAIL_NET_FIRST : UINT32_MAX;
  if (slot >= JAIL_NET_SLOTS || worker.held[slot] >= PENDING_BOX || dns_question(m, (size_t)n, &q))
    return true;
  struct list l;
  bool known_slot = read_list(slot, &l);
  if (known_slot && (l.chosen ? l.count > 0 : dns_listed(l.names, q.name)))
    pass_on(m, (size_t)n, &q, slot, &l, &from);
  else
    sendto(worker.port, m, dns_refuse(m, &q), MSG_DONTWAIT, (struct sockaddr *)&from, sizeof(from));
  return true;
}

static void send_answer(struct pending *p)
{
  struct pending_more *m = more_of(p);
  m->answer[0] = (uint8_t)(m->their_id >> 8);
  m->answer[1] = (uint8_t)m->their_id;
  if (!m->own)
    sendto(worker.port, m->answer, m->size, MSG_DONTWAIT, (struct sockaddr *)&m->from, sizeof(m->from));
  drop(p);
}

/* Asks the keeper for what waits, boxes by turns; its queue being full is no reason to wait here. */
static void open_more(void)
{
  for (size_t i = 0; worker.answered && i < worker.places; i++) {
    size_t at = (worker.first + i) % worker.places;
    struct pending *p = &worker.pending[at];
    struct dns_opening *o = &more_of(p)->opening;
    if (p->state != ANSWERED || worker.opening[p->slot] >= OPENING_BOX)
      continue;
    o->id = ++worker.last_id;
    if (send(worker.keeper, o, sizeof(*o), MSG_NOSIGNAL | MSG_DONTWAIT) != (ssize_t)sizeof(*o)) {
      worker.first = at;
      return;
    }
    set_state(p, OPENING);
  }
  worker.first = (worker.first + 1) % worker.places;
}

static void take_answer(struct pending *p)
{
  struct dns_answer a;
  struct pending_more *m = more_of(p);
  ssize_t n = recv(p->fd, m->answer, sizeof(m->answer), MSG_DONTWAIT);
  if (n < 0 && errno == EAGAIN)
    return;
  if (n > 0 && dns_answer(m->answer, (size_t)n, &m->ours, &a))
    return; /* not ours, or broken: the real one may still come */
  if (n <= 0) {
    ask_next(p); /* nobody is there */
    return;
  }
  struct list l;
  bool fine = read_list(p->slot, &l), open = fine && dns_listed(l.names, m->ours.name);
  fine = open || (fine && l.count > 0);
  drop(p);
  if (!fine)
    return;
  m->size = (size_t)n;
  if (!a.count || !open) {
    send_answer(p);
    return;
  }
  m->opening =
      (struct dns_opening){.slot = p->slot, .seconds = MIN(MAX(a.ttl, OPEN_MIN), OPEN_MAX), .count = (uint32_t)a.count};
  memcpy(m->opening.address, a.address, a.count * sizeof(a.address[0]));
  set_state(p, ANSWERED);
  p->until_us = clock_mono_us() + PATIENCE_US;
}

/* An answer whose addresses may not be opened is not told: the box asks again. */
static void take_verdicts(void)
{
  struct verdict v;
  ssize_t n;
  while ((n = recv(worker.keeper, &v, sizeof(v), MSG_DONTWAIT)) == (ssize_t)sizeof(v))
    for (size_t i = 0; i < worker.places; i++) {
      struct pending *p = &worker.pending[i];
      if (p->state != OPENING || more_of(p)->opening.id != v.id)
        continue;
      if (v.yes)
        send_answer(p);
      else
        drop(p);
    }
  if (n >= 0 || errno != EAGAIN)
    _exit(0); /* the keeper is gone */
}

/* --- names of boxes that have no name server ---- */

static struct deaf *deaf_of(uint32_t slot)
{
  for (size_t i = 0; i < worker.deaf_count; i++)
    if (worker.deaf[i].slot == slot)
      return &worker.deaf[i];
  return NULL;
}

static void note_list(const char *file)
{
  struct list l;
  uint64_t slot;
  if (str_u64(str_of(file), &slot) || slot >= JAIL_NET_SLOTS)
    return;
  bool wanted = read_list((uint32_t)slot, &l) && l.chosen && !l.count;
  struct deaf *d = deaf_of((uint32_t)slot);
  if (!wanted && d)
    *d = worker.deaf[--worker.deaf_count];
  if (wanted && !d && worker.deaf_count < DEAF_MAX)
    d = &worker.deaf[worker.deaf_count++];
  if (wanted && d)
    *d = (struct deaf){.slot = (uint32_t)slot};
}

static void note_all_lists(void)
{
  int copy = fcntl(worker.dir, F_DUPFD_CLOEXEC, 0);
  DIR *d = copy < 0 ? NULL : fdopendir(copy);
  worker.deaf_count = 0;
  if (d)
    rewinddir(d);
  for (struct dirent *e; d && (e = readdir(d));)
    note_list(e->d_name);
  if (d)
    closedir(d);
  else if (copy >= 0)
    close(copy);
}

static void take_changes(void)
{
  _Alignas(struct inotify_event) char events[4096];
  ssize_t n = read(worker.changes, events, sizeof(events));
  for (ssize_t at = 0; at < n;) {
    const struct inotify_event *e = (const struct inotify_event *)(events + at);
    if (e->mask & IN_Q_OVERFLOW)
      note_all_lists();
    else if (e->len)
      note_list(e->name);
    at += (ssize_t)(sizeof(*e) + e->len);
  }
}

/* The n-th name of a list that is no pattern. */
static bool plain_name(struct str names, uint32_t n, struct str *out)
{
  while (names.n) {
    str_cut(names, '\n', out, &names);
    if (out->n && str_find(*out, '*') < 0 && n-- == 0)
      return true;
  }
  return false;
}

/* When the next is due, in ms; -1 for never. */
static int look_up(void)
{
  uint8_t m[DNS_MESSAGE];
  int64_t now = clock_mono_us(), first = INT64_MAX;
  for (size_t i = 0; i < worker.deaf_count; i++) {
    struct deaf *d = &worker.deaf[i];
    struct list l;
    struct str name;
    struct dns_question q;
    while (d->at_us <= now) {
      if (d->name >= DEAF_NAMES || !read_list(d->slot, &l) || !plain_name(l.names, d->name, &name)) {
        d->name = 0;
        d->at_us = now + DEAF_US;
        break;
      }
      size_t n = dns_ask(m, sizeof(m), name);
      if (n && !dns_question(m, n, &q) && !pass_on(m, n, &q, d->slot, &(struct list){0}, NULL)) {
        d->at_us = now + NEXT_US; /* no room, or no resolver */
        break;
      }
      d->name++;
    }
    first = MIN(first, d->at_us);
  }
  return worker.deaf_count ? (int)((MAX(first, now) - now) / 1000 + 1) : -1;
}

static void sweep(int64_t now)
{
  worker.sweep_us = now + SWEEP_US;
  for (size_t i = 0; worker.busy && i < worker.places; i++) {
    struct pending *p = &worker.pending[i];
    if (p->state != FREE && p->until_us < now)
      drop(p);
    if (p->state == ASKED && p->servers_left > 0 && p->next_us < now)
      ask_next(p);
  }
}

/* A place may have changed hands since its event was told: then its new socket has nothing to read, which is no harm.
 */
static void worker_turn(void)
{
  struct epoll_event events[64];
  bool questions = false;
  int due = look_up();
  int64_t now = clock_mono_us();
  if (worker.sweep_us <= now)
    sweep(now);
  int most = worker.busy ? SWEEP_US / 1000 : -1;
  int n = epoll_wait(worker.events, events, ARRAY_LEN(events), due < 0 || (most >= 0 && most < due) ? most : due);
  for (int i = 0; i < n; i++) {
    void *what = events[i].data.ptr;
    if (what == &worker.keeper)
      take_verdicts();
    else if (what == &worker.changes)
      take_changes();
    else if (what == &worker.port)
      questions = true;
    else if (((struct pending *)what)->state == ASKED)
      take_answer(what);
  }
  open_more();
  for (int i = 0; questions && i < QUESTIONS; i++)
    questions = take_question();
}

static _Noreturn void worker_run(const struct jail_net_config *config, uint32_t resolver, int dir, int port, int keeper)
{
  prctl(PR_SET_NAME, "dns-proxy");
  worker.config = config;
  worker.resolver = resolver;
  worker.dir = dir;
  worker.port = port;
  worker.keeper = keeper;
  worker.changes = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
  if (worker.changes < 0 || inotify_add_watch(worker.changes, config->dns_lists, IN_MOVED_TO | IN_DELETE) < 0)
    _exit(1);
  worker.events = epoll_create1(EPOLL_CLOEXEC);
  if (worker.events < 0 || !watch(port, &worker.port) || !watch(keeper, &worker.keeper) ||
      !watch(worker.changes, &worker.changes))
    _exit(1);
  drop_rights();
  note_all_lists();
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
  if (fd < 0 || setsockopt(fd, IPPROTO_IP, IP_FREEBIND, &(int){1}, sizeof(int)) ||
      setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &(int){1}, sizeof(int)) || bind(fd, (struct sockaddr *)&sa, sizeof(sa)))
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

int dns_proxy_start(const struct jail_net_config *config, uint32_t resolver, dns_proxy_open_fn *open_fn,
                    struct err *err)
{
  if ((mkdir(config->dns_lists, 0755) && errno != EEXIST) || chmod(config->dns_lists, 0755))
    return err_errno(err, "making %s", config->dns_lists);
  cleanup_fd int dir = open(config->dns_lists, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (dir < 0)
    return err_errno(err, "opening %s", config->dns_lists);
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

void dns_proxy_stop(pid_t keeper)
{
  if (keeper <= 0)
    return;
  kill(keeper, SIGKILL); /* its worker goes with it */
  waitpid(keeper, NULL, 0);
}

/* Written aside and renamed, so that the worker reads a whole list or none. No fsync: after a crash of the host there
 * is no box to whom it would matter. */
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

int dns_proxy_set(const char *dir, uint32_t slot, const char *lines, struct err *err)
{
  char path[PATH_MAX];
  if ((size_t)snprintf(path, sizeof(path), "%s/%u", dir, slot) >= sizeof(path))
    return err_set(err, -ENAMETOOLONG, "path too long: %s", dir);
  if (!lines)
    return unlink(path) && errno != ENOENT ? err_errno(err, "removing %s", path) : 0;
  int r = write_aside(path, lines);
  return r ? err_set(err, r, "writing %s: %s", path, strerrordesc_np(-r)) : 0;
}
