/* SPDX-License-Identifier: Apache-2.0 */
/* serve.c - `cloche serve`: the supervisor. It opens the listening sockets, starts the warden and the gates, links them
 * to each other, starts a dead one again, and tells people how to use the server. It never touches a request or a box,
 * so it has little to die of. */
#include "audit/audit.h"
#include "cli/cli.h"
#include "cli/config.h"
#include "cli/console_pack.h"
#include "cli/listener.h"
#include "cli/reload.h"
#include "cli/role_exec.h"
#include "cli/service_manager.h"
#include "cli/tls_listener.h"
#include "confine/confine.h"
#include "content/content.h"
#include "egress/egress.h"
#include "exporter/exporter.h"
#include "gate/gate.h"
#include "gate/metrics_shm.h"
#include "mcp/server.h"
#include "sender/sender.h"
#include "warden/warden.h"
#include "wire/api_key.h"
#include "wire/box_socket.h"
#include "wire/control.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#define GATES_MAX 256

struct role {
  const char *name;
  pid_t pid;
  int control;
  int listener; /* gates: kept open here, so that a restart loses no waiting connection */
  bool ready;
  int64_t started_us;
  int64_t again_us; /* dead: when it may be started again */
  unsigned failures;
};

struct supervisor {
  struct config *config; /* in force: as it was read, and as SIGHUP changed it */
  int argc;
  char **argv;
  struct role warden, sender, egress, content, mcp, audit, exporter, store, gates[GATES_MAX];
  size_t ngates;
  int signals, exit_with, lock;
  int metrics_shm;      /* shared memory of the gates' metrics */
  int metrics_listener; /* served by the first gate; -1 = none */
  bool console_on;
  int console; /* its files, sealed; -1 = none in this build */
  struct tls_listener tls_listener;
  struct service_manager manager;
  char url[URL_SIZE], first_key[KEY_TEXT], console_code[KEY_TEXT];
  struct timespec names_changed[2]; /* of the files that the sender has copies of */
  bool mcp_wanted;                  /* a gate has asked for it */
  bool announced, stopping;
};

/* ---- roles ---- */

static int become_role(struct config *c)
{
  log_open(c->role, 2);
  settings_follow(c);
  if (!strcmp(c->role, "warden"))
    return warden_main(&c->warden);
  config_drop_admin_token(c); /* the warden checks it */
  struct err err = ERR_NONE;
  if (confine_no_rings(&err)) {
    log_error("%s", err.msg);
    return 1;
  }
  if (!strcmp(c->role, "sender"))
    return sender_main(&c->sender);
  if (!strcmp(c->role, "egress"))
    return egress_main(&c->egress);
  if (!strcmp(c->role, "content"))
    return content_main(&c->content);
  if (!strcmp(c->role, "mcp"))
    return mcp_main(&c->mcp);
  if (!strcmp(c->role, "exporter"))
    return exporter_main(&c->exporter);
  if (!strcmp(c->role, "audit"))
    return audit_main(&c->audit);
  return gate_main(&c->gate);
}

static int start_role(struct supervisor *s, struct role *r, struct err *err)
{
  int pair[2];
  if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair))
    return err_errno(err, "socketpair");
  box_socket_guard(pair[0]); /* a gate that was taken over could stop us with a descriptor; no role sends any */
  pid_t pid = fork();
  if (pid < 0)
    return err_errno(err, "fork");
  if (pid == 0 && r == &s->store)
    exec_store(s->config, pair[1]);
  if (pid == 0)
    exec_role(s->config, s->argc, s->argv, r->name, pair[1]);
  close(pair[1]);
  r->pid = pid;
  r->control = pair[0];
  r->ready = false;
  r->started_us = clock_mono_us();
  return 0;
}

static void tell(struct role *r, char letter, int fd)
{
  if (r->control >= 0)
    fd_send(r->control, &letter, 1, &fd, fd >= 0 ? 1 : 0, MSG_DONTWAIT);
}

/* Of the warden with another role. */
static void ipc_up(struct supervisor *s, struct role *other)
{
  int pair[2];
  if (!s->warden.ready || !other->ready || socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair))
    return;
  char letter = other == &s->sender     ? CONTROL_SENDER
                : other == &s->egress   ? CONTROL_EGRESS
                : other == &s->content  ? CONTROL_CONTENT
                : other == &s->store    ? CONTROL_STORE
                : other == &s->audit    ? CONTROL_AUDIT
                : other == &s->exporter ? CONTROL_EXPORTER
                                        : CONTROL_LINK;
  tell(&s->warden, letter, pair[0]);
  tell(other, other == &s->exporter ? CONTROL_EXPORTER : CONTROL_LINK, pair[1]);
  close(pair[0]);
  close(pair[1]);
}

/* Of the MCP role with a gate. */
static void mcp_up(struct supervisor *s, struct role *gate)
{
  int pair[2];
  if (!s->mcp.ready || !gate->ready || socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair))
    return;
  tell(&s->mcp, CONTROL_LINK, pair[0]);
  tell(gate, CONTROL_MCP, pair[1]);
  close(pair[0]);
  close(pair[1]);
}

/* Of the audit role with a gate, whose number goes along. */
static void audit_up(struct supervisor *s, struct role *gate)
{
  int pair[2];
  char word[32];
  if (!s->audit.ready || !gate->ready || socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair))
    return;
  int n = snprintf(word, sizeof(word), "%c%zu", CONTROL_LINK, (size_t)(gate - s->gates));
  fd_send(s->audit.control, word, (size_t)n, &pair[0], 1, MSG_DONTWAIT);
  tell(gate, CONTROL_AUDIT, pair[1]);
  close(pair[0]);
  close(pair[1]);
}

/* Of the exporter with a gate, whose number goes along: the first one tells the metrics. */
static void exporter_up(struct supervisor *s, struct role *gate)
{
  int pair[2];
  char word[32];
  if (!s->exporter.ready || !gate->ready || socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair))
    return;
  int n = snprintf(word, sizeof(word), "%c%zu", CONTROL_EXPORTER, (size_t)(gate - s->gates));
  tell(&s->exporter, CONTROL_LINK, pair[0]);
  fd_send(gate->control, word, (size_t)n, &pair[1], 1, MSG_DONTWAIT);
  close(pair[0]);
  close(pair[1]);
}

/* ---- what the world is told ---- */

static void write_ready_file(struct supervisor *s)
{
  if (!s->config->ready_file[0])
    return;
  cleanup_buf struct buf b = BUF_INIT(4096);
  struct jw w = JW(&b);
  jw_open(&w, '{');
  jw_key(&w, "url");
  jw_z(&w, s->url);
  if (s->tls_listener.url[0]) {
    jw_key(&w, "tlsUrl");
    jw_z(&w, s->tls_listener.url);
  }
  if (s->first_key[0]) {
    jw_key(&w, "apiKey");
    jw_z(&w, s->first_key);
  }
  jw_key(&w, "pid");
  jw_int(&w, getpid());
  jw_close(&w, '}');
  buf_addc(&b, '\n');
  int r = file_write_atomic(s->config->ready_file, b.p, b.n, 0600);
  if (r)
    log_error("ready file %s: %s", s->config->ready_file, strerrordesc_np(-r));
}

/* For `cloche open`. */
static void write_url(struct supervisor *s)
{
  char path[DATA_PATH_SIZE];
  snprintf(path, sizeof(path), "%s/url", s->config->warden.data);
  int r = file_write_atomic(path, s->url, strlen(s->url), 0600);
  if (r)
    log_error("%s: %s", path, strerrordesc_np(-r));
}

static void tell_ready(struct supervisor *s)
{
  service_tell(&s->manager, "READY=1\nSTATUS=serving at %s%s%s", s->url, s->tls_listener.url[0] ? " and " : "",
               s->tls_listener.url);
}

static void announce(struct supervisor *s)
{
  for (size_t i = 0; i < s->ngates; i++)
    if (!s->gates[i].ready)
      return;
  if (!s->warden.ready)
    return;
  if (s->announced) {
    tell_ready(s);
    return;
  }
  s->announced = true;
  printf("\nCloche is ready at %s\n\nPaste this where your E2B client runs:\n\n"
         "  export E2B_API_URL=%s\n  export E2B_SANDBOX_URL=%s\n  export E2B_VOLUME_API_URL=%s\n",
         s->url, s->url, s->url, s->url);
  if (s->tls_listener.url[0])
    printf("  (or, over https: the same with %s, and the variables that `cloche tls show` prints)\n",
           s->tls_listener.url);
  if (service_here(&s->manager)) /* a log is no place for keys */
    printf("  export E2B_API_KEY=...   (make a key: cloche key create NAME)\n\n");
  else if (s->first_key[0])
    printf("  export E2B_API_KEY=%s\n\nThe key is shown this once; only its hash is kept. More keys: cloche key "
           "create\n\n",
           s->first_key);
  else
    printf("  export E2B_API_KEY=...   (the key of the first start, or a new one: cloche key create)\n\n");
  if (s->console_on && service_here(&s->manager))
    printf("The console: %s (a link that signs in: cloche open)\n\n", s->url);
  else if (s->console_on)
    printf("The console: %s/#login=%s\n(signs in once, within %u s; another link: cloche open)\n\n", s->url,
           s->console_code, s->config->warden.console_code_s);
  explicit_bzero(s->console_code, sizeof(s->console_code));
  fflush(stdout);
  write_url(s);
  write_ready_file(s);
  tell_ready(s);
}

/* ---- metrics ---- */

static void send_metrics_shm(struct supervisor *s, struct role *gate)
{
  char word[64];
  int n = snprintf(word, sizeof(word), "%c%zu/%zu", CONTROL_METRICS_SHM, (size_t)(gate - s->gates), s->ngates);
  if (s->metrics_shm >= 0 && gate->control >= 0)
    fd_send(gate->control, word, (size_t)n, &s->metrics_shm, 1, MSG_DONTWAIT);
}

static int make_metrics_shm(struct supervisor *s, struct err *err)
{
  s->metrics_shm = memfd_create("cloche-metrics", MFD_CLOEXEC);
  if (s->metrics_shm < 0 || ftruncate(s->metrics_shm, (off_t)metrics_shm_size(s->ngates)))
    return err_errno(err, "shared memory for metrics");
  return 0;
}

/* ---- the sender ---- */

static void add_own(struct buf *b, int listener)
{
  struct sockaddr_in a;
  socklen_t n = sizeof(a);
  char host[INET_ADDRSTRLEN];
  if (listener >= 0 && !getsockname(listener, (struct sockaddr *)&a, &n) && a.sin_family == AF_INET &&
      inet_ntop(AF_INET, &a.sin_addr, host, sizeof(host)))
    buf_addf(b, "%s:%u\n", host, ntohs(a.sin_port));
}

/* The server's own listeners, which no webhook may reach. */
static void send_own(const struct supervisor *s)
{
  cleanup_buf struct buf b = BUF_INIT(600);
  buf_addc(&b, CONTROL_OWN);
  add_own(&b, s->gates[0].listener);
  add_own(&b, s->tls_listener.url[0] ? s->tls_listener.listeners[0] : -1);
  add_own(&b, s->metrics_listener);
  fd_send(s->sender.control, b.p, b.n, NULL, 0, MSG_DONTWAIT);
}

/* The sender resolves names by copies of these files; a new one copies them anew. */
static bool names_changed(struct supervisor *s)
{
  static const char *const files[] = {"/etc/resolv.conf", "/etc/hosts"};
  bool changed = false;
  for (size_t i = 0; i < ARRAY_LEN(files); i++) {
    struct stat st;
    struct timespec now = stat(files[i], &st) ? (struct timespec){0} : st.st_mtim;
    changed |= now.tv_sec != s->names_changed[i].tv_sec || now.tv_nsec != s->names_changed[i].tv_nsec;
    s->names_changed[i] = now;
  }
  return changed;
}

static void renew_sender(struct supervisor *s)
{
  if (!names_changed(s))
    return;
  log_info("the host's name service has changed; starting again what has a copy of it");
  if (s->sender.ready)
    tell(&s->sender, CONTROL_STOP, -1);
  if (s->store.ready)
    kill(s->store.pid, SIGTERM); /* without giving the node's lease back, as CONTROL_STOP would */
}

/* ---- what roles say ---- */

static void role_said(struct supervisor *s, struct role *r, struct str word)
{
  if (word.p[0] == CONTROL_FAILED) {
    log_error("%s can't start: " STR_FMT, r->name, STR_ARG(str_skip(word, 1)));
    return;
  }
  if (word.p[0] == CONTROL_HUNG && r == &s->warden && s->content.pid) {
    log_warn("content does not answer; replacing it");
    kill(s->content.pid, SIGKILL);
  }
  if (word.p[0] == CONTROL_WANT_MCP)
    s->mcp_wanted = true;
  if (word.p[0] != CONTROL_READY)
    return;
  r->ready = true;
  if (r == &s->warden) {
    struct str key, code;
    str_cut(str_skip(word, 1), '\n', &key, &code);
    if (key.n)
      str_copyz(key, s->first_key, sizeof(s->first_key));
    str_copyz(code, s->console_code, sizeof(s->console_code));
    for (size_t i = 0; i < s->ngates; i++)
      ipc_up(s, &s->gates[i]);
    ipc_up(s, &s->sender);
    ipc_up(s, &s->egress);
    ipc_up(s, &s->content);
    ipc_up(s, &s->audit);
    ipc_up(s, &s->store);
    ipc_up(s, &s->exporter);
  } else if (r == &s->egress || r == &s->content || r == &s->store) {
    ipc_up(s, r);
  } else if (r == &s->sender) {
    send_own(s);
    ipc_up(s, r);
  } else if (r == &s->audit) {
    for (size_t i = 0; i < s->ngates; i++)
      audit_up(s, &s->gates[i]);
    ipc_up(s, r);
  } else if (r == &s->exporter) {
    for (size_t i = 0; i < s->ngates; i++)
      exporter_up(s, &s->gates[i]);
    ipc_up(s, r);
  } else if (r == &s->mcp) {
    for (size_t i = 0; i < s->ngates; i++)
      mcp_up(s, &s->gates[i]);
  } else {
    mcp_up(s, r);
    audit_up(s, r);
    send_metrics_shm(s, r);
    exporter_up(s, r);
    ipc_up(s, r);
    if (s->console_on)
      tell(r, CONTROL_CONSOLE, s->console);
    tell(r, CONTROL_LISTEN, r->listener);
    tls_listener_give(&s->tls_listener, r->control, (size_t)(r - s->gates), true);
    if (r == &s->gates[0] && s->metrics_listener >= 0)
      tell(r, CONTROL_METRICS, s->metrics_listener);
  }
  announce(s);
}

/* False when there is nothing more to hear now. */
static bool hear(struct supervisor *s, struct role *r)
{
  char word[700];
  ssize_t k = box_socket_recv(r->control, word, sizeof(word));
  if (k > 0) {
    role_said(s, r, (struct str){word, (size_t)k});
  } else if (k != -EAGAIN) {
    box_socket_close(r->control);
    r->control = -1;
  }
  return k > 0;
}

/* ---- deaths ---- */

static bool role_died(struct supervisor *s, struct role *r, pid_t pid, int status)
{
  if (r->pid != pid)
    return false;
  int64_t lived = clock_mono_us() - r->started_us;
  r->failures = lived > 10000000 ? 0 : r->failures + 1;
  unsigned doublings = MIN(r->failures, 6u);
  int64_t pause = r->failures <= 1 ? 0 : MIN(100000ll << doublings, 5000000ll);
  r->again_us = clock_mono_us() + pause;
  r->pid = 0;
  r->ready = false;
  while (r->control >= 0 && hear(s, r)) /* its last words */
    ;
  if (r->control >= 0) { /* a process it had just forked still holds the other end */
    box_socket_close(r->control);
    r->control = -1;
  }
  if (!s->stopping) {
    log_warn("%s ended (%s %d); starting it again", r->name, WIFSIGNALED(status) ? "signal" : "status",
             WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status));
    service_tell(&s->manager, "STATUS=%s ended; starting it again", r->name);
  }
  return true;
}

/* Boxes whose warden died are handed to us (we are the subreaper); they are only reaped. */
static void reap(struct supervisor *s)
{
  int status;
  for (pid_t pid; (pid = waitpid(-1, &status, WNOHANG)) > 0;) {
    bool ours = role_died(s, &s->warden, pid, status) || role_died(s, &s->sender, pid, status) ||
                role_died(s, &s->egress, pid, status) || role_died(s, &s->content, pid, status) ||
                role_died(s, &s->mcp, pid, status) || role_died(s, &s->audit, pid, status) ||
                role_died(s, &s->exporter, pid, status) || role_died(s, &s->store, pid, status);
    for (size_t i = 0; !ours && i < s->ngates; i++)
      ours = role_died(s, &s->gates[i], pid, status);
  }
}

static bool has_egress(const struct supervisor *s)
{
  return s->config->warden.internet && s->config->warden.egress_port;
}

static bool has_audit(const struct supervisor *s)
{
  return s->config->gate.audit != AUDIT_OFF;
}

static bool has_exporter(const struct supervisor *s)
{
  return s->config->exporter.endpoint[0] != 0;
}

static bool has_store(const struct supervisor *s)
{
  return s->config->warden.clustered;
}

static void restart_dead(struct supervisor *s)
{
  int64_t now = clock_mono_us();
  struct err err = ERR_NONE;
  if (!s->warden.pid && now >= s->warden.again_us && start_role(s, &s->warden, &err))
    log_error("%s", err.msg);
  if (!s->sender.pid && now >= s->sender.again_us && start_role(s, &s->sender, &err))
    log_error("%s", err.msg);
  if (has_egress(s) && !s->egress.pid && now >= s->egress.again_us && start_role(s, &s->egress, &err))
    log_error("%s", err.msg);
  if (!s->content.pid && now >= s->content.again_us && start_role(s, &s->content, &err))
    log_error("%s", err.msg);
  if (has_audit(s) && !s->audit.pid && now >= s->audit.again_us && start_role(s, &s->audit, &err))
    log_error("%s", err.msg);
  if (has_exporter(s) && !s->exporter.pid && now >= s->exporter.again_us && start_role(s, &s->exporter, &err))
    log_error("%s", err.msg);
  if (has_store(s) && !s->store.pid && now >= s->store.again_us && start_role(s, &s->store, &err))
    log_error("%s", err.msg);
  if (s->mcp_wanted && !s->mcp.pid && now >= s->mcp.again_us && start_role(s, &s->mcp, &err))
    log_error("%s", err.msg);
  for (size_t i = 0; i < s->ngates; i++)
    if (!s->gates[i].pid && now >= s->gates[i].again_us && start_role(s, &s->gates[i], &err))
      log_error("%s", err.msg);
}

/* ---- beginnings ---- */

static int open_listeners(struct supervisor *s, struct err *err)
{
  char host[LISTEN_HOST_SIZE];
  uint16_t port;
  int fds[GATES_MAX];
  s->metrics_listener = -1;
  int r = listeners_open(&s->manager, "listen", s->config->listen, s->ngates, fds, host, &port, err);
  if (r)
    return r;
  for (size_t i = 0; i < s->ngates; i++)
    s->gates[i].listener = fds[i];
  snprintf(s->url, sizeof(s->url), "http://%s:%u", strcmp(host, "0.0.0.0") ? host : "127.0.0.1", port);
  if (s->config->metrics_listen[0])
    r = listeners_open(&s->manager, "metrics_listen", s->config->metrics_listen, 1, &s->metrics_listener, host, &port,
                       err);
  r = r ? r : tls_listener_open(&s->tls_listener, s->config, s->ngates, &s->manager, err);
  service_close_rest(&s->manager);
  return r;
}

/* Files of boxes lie there with the ids and modes that boxes gave them, setuid programs too: nobody but us may come so
 * far. */
static int own_dir(int at, const char *name, const char *shown, mode_t bits, struct err *err)
{
  struct stat st;
  cleanup_fd int fd = openat(at, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  if (fd < 0 && (errno == ELOOP || errno == ENOTDIR))
    return err_set(err, -errno,
                   "%s is a symbolic link or no directory; name the directory itself, or mount another one there",
                   shown);
  if (fd < 0 || fstat(fd, &st))
    return err_errno(err, "%s", shown);
  if (st.st_uid != geteuid())
    return err_set(err, -EPERM, "%s belongs to user %u, not to the server's (%u); chown it, or use --data", shown,
                   st.st_uid, geteuid());
  if ((st.st_mode & bits) && fchmod(fd, st.st_mode & 07777 & ~bits))
    return err_errno(err, "closing %s to others", shown);
  if (st.st_mode & bits)
    log_warn("%s had mode %03o, access of others removed", shown, st.st_mode & 0777);
  return 0;
}

/* What is below may be readable: nobody comes through the top. It must be ours, and no way out of it. */
static int own_data(const char *data, struct err *err)
{
  int r = own_dir(AT_FDCWD, data, data, 0077, err);
  cleanup_dir DIR *d = r ? NULL : opendir(data);
  for (struct dirent *e; d && !r && (e = readdir(d));) {
    char shown[PATH_MAX];
    snprintf(shown, sizeof(shown), "%s/%s", data, e->d_name);
    if (e->d_name[0] != '.' && (e->d_type == DT_DIR || e->d_type == DT_LNK))
      r = own_dir(dirfd(d), e->d_name, shown, 0022, err);
  }
  return r;
}

static int lock_data(struct supervisor *s, struct err *err)
{
  char path[DATA_PATH_SIZE];
  int r = path_mkdirs(s->config->warden.data, 0700);
  if (r)
    return err_set(err, r, "data directory %s: %s", s->config->warden.data, strerrordesc_np(-r));
  if ((r = own_data(s->config->warden.data, err)))
    return r;
  snprintf(path, sizeof(path), "%s/lock", s->config->warden.data);
  s->lock = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  if (s->lock < 0)
    return err_errno(err, "%s", path);
  if (flock(s->lock, LOCK_EX | LOCK_NB))
    return err_set(err, -EBUSY, "another cloche serves the data directory %s; stop it first or use --data",
                   s->config->warden.data);
  return 0;
}

static void set_up_signals(struct supervisor *s)
{
  sigset_t set;
  sigemptyset(&set);
  static const int wanted[] = {SIGCHLD, SIGINT, SIGTERM, SIGHUP};
  for (size_t i = 0; i < ARRAY_LEN(wanted); i++) {
    signal(wanted[i], SIG_DFL);
    sigaddset(&set, wanted[i]);
  }
  signal(SIGPIPE, SIG_IGN);
  sigprocmask(SIG_BLOCK, &set, NULL);
  s->signals = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
}

static int begin(struct supervisor *s, struct err *err)
{
  long cores = sysconf(_SC_NPROCESSORS_ONLN);
  s->ngates = s->config->gates ? s->config->gates : (size_t)MAX(cores, 1l);
  s->warden = (struct role){.name = "warden", .control = -1, .listener = -1};
  s->sender = (struct role){.name = "sender", .control = -1, .listener = -1};
  s->egress = (struct role){.name = "egress", .control = -1, .listener = -1};
  s->content = (struct role){.name = "content", .control = -1, .listener = -1};
  s->mcp = (struct role){.name = "mcp", .control = -1, .listener = -1};
  s->audit = (struct role){.name = "audit", .control = -1, .listener = -1};
  s->exporter = (struct role){.name = "exporter", .control = -1, .listener = -1};
  s->store = (struct role){.name = "store", .control = -1, .listener = -1};
  names_changed(s);
  for (size_t i = 0; i < s->ngates; i++)
    s->gates[i] = (struct role){.name = "gate", .control = -1, .listener = -1};
  s->exit_with = -1;
  if (s->config->exit_with && (s->exit_with = (int)syscall(SYS_pidfd_open, s->config->exit_with, 0)) < 0)
    return err_errno(err, "--exit-with %lld", (long long)s->config->exit_with);
  prctl(PR_SET_CHILD_SUBREAPER, 1);
  set_up_signals(s);
  int r = lock_data(s, err);
  s->console_on = console_pack_open(s->config->console, &s->console);
  r = r ? r : make_metrics_shm(s, err);
  r = r ? r : open_listeners(s, err);
  r = r ? r : start_role(s, &s->warden, err);
  r = r ? r : start_role(s, &s->sender, err);
  r = r || !has_egress(s) ? r : start_role(s, &s->egress, err);
  r = r ? r : start_role(s, &s->content, err);
  r = r || !has_audit(s) ? r : start_role(s, &s->audit, err);
  r = r || !has_exporter(s) ? r : start_role(s, &s->exporter, err);
  r = r || !has_store(s) ? r : start_role(s, &s->store, err);
  for (size_t i = 0; !r && i < s->ngates; i++)
    r = start_role(s, &s->gates[i], err);
  return r;
}

/* ---- the loop and the end ---- */

static void stop(struct supervisor *s, bool end_boxes)
{
  if (s->stopping && !end_boxes)
    return;
  s->stopping = true;
  service_tell(&s->manager, "STOPPING=1\nSTATUS=%s",
               end_boxes ? "ending all boxes" : "stopping; boxes go on without the server");
  for (size_t i = 0; i < s->ngates; i++)
    tell(&s->gates[i], CONTROL_STOP, -1);
  tell(&s->sender, CONTROL_STOP, -1);
  tell(&s->egress, CONTROL_STOP, -1);
  tell(&s->content, CONTROL_STOP, -1);
  tell(&s->mcp, CONTROL_STOP, -1);
  tell(&s->audit, CONTROL_STOP, -1);
  tell(&s->exporter, CONTROL_STOP, -1);
  tell(&s->store, CONTROL_STOP, -1);
  tell(&s->warden, end_boxes ? CONTROL_STOP_ALL : CONTROL_STOP, -1);
}

static void renew_certificate(struct supervisor *s, bool now)
{
  if (!tls_listener_renewed(&s->tls_listener, now))
    return;
  for (size_t i = 0; i < s->ngates; i++)
    if (s->gates[i].ready)
      tls_listener_give(&s->tls_listener, s->gates[i].control, i, false);
}

static void reload(struct supervisor *s)
{
  struct role *const single[] = {&s->warden, &s->sender, &s->egress, &s->content, &s->mcp, &s->audit, &s->exporter};
  cleanup_buf struct buf b = BUF_INIT(1 << 16);
  renew_certificate(s, true);
  if (!settings_reload(s->config, s->argc, s->argv))
    return;
  settings_packet(s->config, &b);
  for (size_t i = 0; i < ARRAY_LEN(single) + s->ngates; i++) {
    struct role *r = i < ARRAY_LEN(single) ? single[i] : &s->gates[i - ARRAY_LEN(single)];
    if (r->control >= 0 && fd_send(r->control, b.p, b.n, NULL, 0, MSG_DONTWAIT) < 0)
      log_error("%s was not told the new settings; send SIGHUP again: %s", r->name, strerrordesc_np(errno));
  }
}

static void take_signals(struct supervisor *s)
{
  struct signalfd_siginfo info;
  while (read(s->signals, &info, sizeof(info)) == sizeof(info)) {
    if (info.ssi_signo == SIGCHLD)
      reap(s);
    else if (info.ssi_signo == SIGINT || info.ssi_signo == SIGTERM)
      stop(s, info.ssi_signo == SIGINT);
    else if (info.ssi_signo == SIGHUP) {
      service_tell(&s->manager, "RELOADING=1\nMONOTONIC_USEC=%lld", (long long)clock_mono_us());
      reload(s);
      if (s->announced)
        tell_ready(s);
    }
  }
}

static bool all_gone(const struct supervisor *s)
{
  bool any = s->warden.pid != 0 || s->sender.pid != 0 || s->egress.pid != 0 || s->content.pid != 0 || s->mcp.pid != 0 ||
             s->audit.pid != 0 || s->exporter.pid != 0 || s->store.pid != 0;
  for (size_t i = 0; i < s->ngates; i++)
    any |= s->gates[i].pid != 0;
  return !any;
}

static void wait_for_something(struct supervisor *s)
{
  struct pollfd p[GATES_MAX + 10];
  struct role *of[GATES_MAX + 10];
  nfds_t n = 0;
  p[n++] = (struct pollfd){.fd = s->signals, .events = POLLIN};
  p[n++] = (struct pollfd){.fd = s->exit_with, .events = POLLIN};
  of[n] = &s->warden;
  p[n++] = (struct pollfd){.fd = s->warden.control, .events = POLLIN};
  of[n] = &s->sender;
  p[n++] = (struct pollfd){.fd = s->sender.control, .events = POLLIN};
  of[n] = &s->egress;
  p[n++] = (struct pollfd){.fd = s->egress.control, .events = POLLIN};
  of[n] = &s->content;
  p[n++] = (struct pollfd){.fd = s->content.control, .events = POLLIN};
  of[n] = &s->mcp;
  p[n++] = (struct pollfd){.fd = s->mcp.control, .events = POLLIN};
  of[n] = &s->audit;
  p[n++] = (struct pollfd){.fd = s->audit.control, .events = POLLIN};
  of[n] = &s->exporter;
  p[n++] = (struct pollfd){.fd = s->exporter.control, .events = POLLIN};
  of[n] = &s->store;
  p[n++] = (struct pollfd){.fd = s->store.control, .events = POLLIN};
  for (size_t i = 0; i < s->ngates; i++) {
    of[n] = &s->gates[i];
    p[n++] = (struct pollfd){.fd = s->gates[i].control, .events = POLLIN};
  }
  bool dead = !s->warden.pid || !s->sender.pid || (has_egress(s) && !s->egress.pid) || !s->content.pid ||
              (s->mcp_wanted && !s->mcp.pid) || (has_audit(s) && !s->audit.pid) ||
              (has_exporter(s) && !s->exporter.pid) || (has_store(s) && !s->store.pid);
  for (size_t i = 0; i < s->ngates; i++)
    dead |= !s->gates[i].pid;
  poll(p, n, service_alive(&s->manager, dead && !s->stopping ? 20 : s->tls_listener.material >= 0 ? 2500 : 60000));
  for (nfds_t i = 2; i < n; i++)
    if (p[i].fd >= 0 && p[i].revents)
      hear(s, of[i]);
  if (p[0].revents)
    take_signals(s);
  if (s->exit_with >= 0 && p[1].revents) {
    close(s->exit_with);
    s->exit_with = -1;
    stop(s, true);
  }
}

static int supervise(struct supervisor *s)
{
  while (!(s->stopping && all_gone(s))) {
    wait_for_something(s);
    if (!s->stopping && !s->announced && s->warden.failures >= 3) {
      log_error("the warden can't start; giving up");
      stop(s, false);
      return 1;
    }
    if (!s->stopping) {
      restart_dead(s);
      renew_certificate(s, false);
      renew_sender(s);
    }
  }
  return 0;
}

int serve_main(int argc, char **argv)
{
  static struct config config;
  struct err err = ERR_NONE;
  proc_hide(); /* from here on there are secrets in it */
  if (config_read(&config, argc, argv, &err))
    return usage_error("%s", err.msg);
  enum log_level level = LOG_INFO;
  log_level_parse(config.log_level, &level);
  log_level_set(level);
  if (config.help) {
    config_help();
    return 0;
  }
  if (config.print) {
    config_print(&config, false);
    return 0;
  }
  if (config.role[0])
    return become_role(&config);
  log_open("serve", 2);
  if (geteuid() != 0)
    return usage_error("serve needs root: boxes are made of namespaces, mounts and cgroups");
  static struct supervisor s;
  service_open(&s.manager);
  s.config = &config;
  s.argc = argc;
  s.argv = argv;
  if (begin(&s, &err)) {
    log_error("%s", err.msg);
    return 1;
  }
  return supervise(&s);
}
