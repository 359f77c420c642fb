/* SPDX-License-Identifier: Apache-2.0 */
/* guest_init.c - cloche-guest-init: pid 1 of a guest; see guest.h.
 *
 * It trusts what comes through the port, which is the warden's and warder's, and nothing of the box. Root of the box
 * may kill it or take it over: that harms this guest alone. It ends the machine when the agent is over. */
#include "wire/guest_frame.h"
#include "guest/guest.h"
#include "wire/boot_packet.h"

#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mount.h>
#include <sys/reboot.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>

#define PORT_WAIT_MS 10000
#define OPEN_FILES   1048576
#define AGENT        "/usr/lib/cloche/agent"

void guest_die(const char *fmt, ...)
{
  va_list ap;
  va_start(ap, fmt);
  dprintf(2, "guest-init: ");
  vdprintf(2, fmt, ap);
  dprintf(2, "\n");
  va_end(ap);
  if (getpid() == 1)
    reboot(RB_AUTOBOOT); /* QEMU runs with -no-reboot: it exits */
  _exit(1);
}

/* ---- the beginning ---- */

static void mount_own(void)
{
  mkdir("/proc", 0755);
  mkdir("/sys", 0755);
  mkdir("/dev", 0755);
  int r = mount("devtmpfs", "/dev", "devtmpfs", MS_NOSUID, "mode=0755");
  int console = open("/dev/console", O_RDWR | O_CLOEXEC);
  for (int fd = 0; console >= 0 && fd < 3; fd++)
    dup2(console, fd);
  if ((r && errno != EBUSY) || mount("proc", "/proc", "proc", 0, NULL) || mount("sysfs", "/sys", "sysfs", 0, NULL))
    guest_die("mounting /proc, /sys and /dev: %s", strerror(errno));
}

static bool look_for_port(char out[300])
{
  cleanup_dir DIR *d = opendir("/sys/class/virtio-ports");
  for (struct dirent *e; d && (e = readdir(d));) {
    char path[300];
    cleanup_buf struct buf b = BUF_INIT(256);
    snprintf(path, sizeof(path), "/sys/class/virtio-ports/%.200s/name", e->d_name);
    snprintf(out, 300, "/dev/%.200s", e->d_name);
    if (!file_read(path, &b) && str_is(str_trim(buf_str(&b)), GUEST_PORT_NAME) && access(out, F_OK) == 0)
      return true;
  }
  return false;
}

/* Ports appear some time after their driver. */
static int open_port(void)
{
  char path[300];
  for (int waited = 0; !look_for_port(path); waited += 5) {
    if (waited >= PORT_WAIT_MS)
      guest_die("the port to the outside did not appear");
    nanosleep(&(struct timespec){.tv_nsec = 5000000}, NULL);
  }
  int fd = open(path, O_RDWR | O_CLOEXEC);
  if (fd < 0)
    guest_die("opening %s: %s", path, strerror(errno));
  return fd;
}

/* ---- configuration ---- */

static void set_clock(uint64_t us)
{
  struct timespec t = {.tv_sec = (time_t)(us / 1000000), .tv_nsec = (long)(us % 1000000 * 1000)};
  if (clock_settime(CLOCK_REALTIME, &t))
    guest_die("setting the clock: %s", strerror(errno));
}

/* One variable; what begins with GUEST_ is not the agent's. */
static void take_variable(struct guest_config *c, struct str text, size_t *envs)
{
  struct str key, value;
  uint64_t number = 0;
  str_cut(text, '=', &key, &value);
  bool whole = !str_u64(value, &number);
  if (str_is(key, "GUEST_HOSTNAME"))
    c->hostname = value.p;
  else if (str_is(key, "GUEST_NAMESERVER"))
    c->nameserver = value.p;
  else if (str_is(key, "GUEST_ADDRESS") && whole)
    c->address = (uint32_t)number;
  else if (str_is(key, "GUEST_LAYERS") && whole)
    c->layers = (unsigned)number;
  else if (str_is(key, "GUEST_TIME") && whole)
    set_clock(number);
  else if (!str_starts(key, STR("GUEST_")) && *envs < ARRAY_LEN(c->envs) - 1)
    c->envs[(*envs)++] = text.p;
}

static void next_frame(struct guest_reader *r, int port, enum guest_word word, struct guest_frame *head,
                       struct str *body)
{
  int found;
  while ((found = guest_frame_next(r, head, body)) == 0)
    if (guest_read(r, port) <= 0)
      guest_die("the port to the outside was closed");
  if (found < 0 || head->word != word)
    guest_die("unexpected word %u from outside", head->word);
}

/* The texts point into memory that is never freed. */
static void take_config(struct guest_reader *r, int port, struct guest_config *c)
{
  struct guest_frame head;
  struct str body;
  size_t envs = 0;
  if (guest_write(port, GUEST_ASKS, NULL, 0))
    guest_die("asking for the configuration: %s", strerror(errno));
  next_frame(r, port, GUEST_CONFIG, &head, &body);
  char *text = xstrndup(body.p, body.n);
  memcpy(text, body.p, body.n);
  struct str rest = str_make(text, body.n), line;
  guest_frame_done(r, &head);
  while (rest.n) {
    str_cut(rest, 0, &line, &rest);
    take_variable(c, line, &envs);
  }
  if (!c->hostname || !c->address || c->layers == 0 || c->layers > GUEST_LAYER_MAX)
    guest_die("the configuration is not whole");
}

/* ---- the agent ---- */

static _Noreturn void run_agent(const struct guest_config *c, int boot)
{
  static const char *const argv[] = {AGENT, NULL};
  const struct rlimit files = {65536, OPEN_FILES};
  guest_enter_root(c);
  setrlimit(RLIMIT_NOFILE, &files);
  setsid();
  cleanup_fd int null = open("/dev/null", O_RDWR | O_CLOEXEC);
  if (null < 0 || dup2(boot, 3) < 0 || dup2(null, 0) < 0 || dup2(null, 1) < 0)
    guest_die("arranging descriptors: %s", strerror(errno));
  execve(AGENT, (char *const *)argv, (char *const *)c->envs);
  guest_die("%s: %s", AGENT, strerror(errno));
}

static pid_t start_agent(const struct guest_config *c, int boot)
{
  unsigned long flags = CLONE_NEWPID | CLONE_NEWNS | CLONE_NEWUTS | CLONE_NEWIPC | SIGCHLD;
  pid_t pid = (pid_t)syscall(SYS_clone, flags, NULL, NULL, NULL, NULL);
  if (pid == 0)
    run_agent(c, boot);
  if (pid < 0)
    guest_die("starting the agent: %s", strerror(errno));
  return pid;
}

/* ---- the relay ---- */

static void hand_packets(struct guest_reader *r, int boot)
{
  struct guest_frame head;
  struct str body;
  int found;
  while ((found = guest_frame_next(r, &head, &body)) > 0) {
    if (head.word == GUEST_BOOT && send(boot, body.p, body.n, MSG_NOSIGNAL) < 0)
      guest_die("handing a boot packet to the agent: %s", strerror(errno));
    guest_frame_done(r, &head);
  }
  if (found < 0)
    guest_die("malformed frame from outside");
}

/* False when the agent has closed its end. */
static bool from_agent(int boot, int port)
{
  char text[GUEST_ANSWER_MAX];
  ssize_t n = recv(boot, text, sizeof(text), 0);
  if (n < 0 && errno == EINTR)
    return true;
  int r = n > 0 ? guest_write(port, GUEST_ANSWER, text, (size_t)n) : guest_write(port, GUEST_END, NULL, 0);
  if (r)
    guest_die("answering: %s", strerror(-r));
  return n > 0;
}

/* A whole boot packet must fit the socket. */
static void boot_pair(int pair[2])
{
  int size = BOOT_MAX * 2;
  if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair))
    guest_die("making the boot socket: %s", strerror(errno));
  setsockopt(pair[0], SOL_SOCKET, SO_SNDBUFFORCE, &size, sizeof(size));
}

static void relay(struct guest_reader *r, int port, int boot)
{
  for (;;) {
    struct pollfd p[] = {{.fd = port, .events = POLLIN}, {.fd = boot, .events = POLLIN}};
    hand_packets(r, boot); /* some may have come with the configuration */
    if (poll(p, ARRAY_LEN(p), -1) < 0)
      continue;
    if (p[0].revents && guest_read(r, port) <= 0)
      guest_die("the port to the outside was closed");
    if (p[1].revents && !from_agent(boot, port))
      return;
  }
}

int main(void)
{
  static struct guest_config config;
  static struct guest_reader reader = {.max = BOOT_MAX};
  int boot[2], status;
  buf_init(&reader.bytes, BOOT_MAX + sizeof(struct guest_frame));
  signal(SIGPIPE, SIG_IGN);
  mount_own();
  if (getenv(GUEST_PROBE)) {
    dprintf(1, "%s\n", GUEST_PROBED);
    reboot(RB_AUTOBOOT);
  }
  guest_load_modules("/modules");
  int port = open_port();
  take_config(&reader, port, &config);
  guest_make_root(&config);
  guest_link_up(config.address);
  boot_pair(boot);
  pid_t agent = start_agent(&config, boot[1]);
  close(boot[1]);
  relay(&reader, port, boot[0]);
  close(boot[0]);
  close(port);
  for (pid_t pid; (pid = waitpid(-1, &status, 0)) != agent || pid < 0;)
    if (pid < 0 && errno == ECHILD)
      break;
  reboot(RB_AUTOBOOT);
  return 0;
}
