/* SPDX-License-Identifier: Apache-2.0 */
/* guest.c - the small static program that test boxes run as pid 1.
 *
 * It takes one request per packet on fd 3 ("verb argument argument...") and answers one packet of text: "ok ..." or
 * "errno NAME". It knows nothing of the tests; it does what it is told with plain system calls. */
#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/ip.h>
#include <netinet/udp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/shm.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <time.h>
#include <unistd.h>

#define TALK 3
#define ARGS 8
static char answer[32768];

static void say(const char *text)
{
  if (send(TALK, text, strlen(text), MSG_NOSIGNAL) < 0)
    _exit(3);
}

static void result(long r)
{
  if (r < 0)
    snprintf(answer, sizeof(answer), "errno %s", strerrorname_np(errno));
  else
    snprintf(answer, sizeof(answer), "ok %ld", r);
  say(answer);
}

static void do_read(char **a)
{
  int fd = open(a[1], O_RDONLY);
  ssize_t n = fd < 0 ? -1 : 0, got = 3;
  memcpy(answer, "ok ", 3);
  while (fd >= 0 && got < (ssize_t)sizeof(answer) - 1 &&
         (n = read(fd, answer + got, sizeof(answer) - 1 - (size_t)got)) > 0)
    got += n;
  if (fd >= 0)
    close(fd);
  if (n < 0)
    return result(-1);
  answer[got] = 0;
  say(answer);
}

static void do_write(char **a)
{
  int fd = open(a[1], O_WRONLY | O_CREAT, 0644);
  ssize_t n = fd < 0 ? -1 : write(fd, a[2], strlen(a[2]));
  int code = errno;
  if (fd >= 0)
    close(fd);
  errno = code;
  result(n);
}

static void do_list(char **a)
{
  DIR *d = opendir(a[1]);
  if (!d)
    return result(-1);
  size_t n = (size_t)snprintf(answer, sizeof(answer), "ok");
  for (struct dirent *e; (e = readdir(d)) && n < sizeof(answer) - 300;)
    if (strcmp(e->d_name, ".") && strcmp(e->d_name, ".."))
      n += (size_t)snprintf(answer + n, sizeof(answer) - n, " %s", e->d_name);
  closedir(d);
  say(answer);
}

static void do_stat(char **a)
{
  struct stat st;
  if (lstat(a[1], &st))
    return result(-1);
  snprintf(answer, sizeof(answer), "ok %o %u:%u %lld", st.st_mode, st.st_uid, st.st_gid, (long long)st.st_size);
  say(answer);
}

static void do_listen(char **a)
{
  struct sockaddr_in sa = {.sin_family = AF_INET, .sin_port = htons((uint16_t)strtoul(a[1], NULL, 10))};
  sa.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  int s = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  setsockopt(s, SOL_SOCKET, SO_REUSEADDR, &(int){1}, sizeof(int));
  if (s < 0 || bind(s, (struct sockaddr *)&sa, sizeof(sa)) || listen(s, 64))
    return result(-1);
  pid_t pid = fork();
  if (pid == 0) {
    close(TALK);
    for (int c; (c = accept(s, NULL, NULL)) >= 0; close(c))
      if (write(c, "hello from the box\n", 19) != 19)
        continue;
    _exit(0);
  }
  close(s);
  result(pid);
}

/* Takes memory and touches it in a process of its own; tells how that one ended. */
static void do_eat(char **a)
{
  size_t want = strtoull(a[1], NULL, 10);
  pid_t pid = fork();
  if (pid == 0) {
    prctl(PR_SET_NAME, "glutton");
    char *p = mmap(NULL, want, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (p == MAP_FAILED)
      _exit(9);
    for (size_t i = 0; i < want; i += 4096)
      p[i] = 1;
    _exit(0);
  }
  int status = 0;
  if (pid < 0 || waitpid(pid, &status, 0) < 0)
    return result(-1);
  snprintf(answer, sizeof(answer), "ok %s %d", WIFSIGNALED(status) ? "signal" : "exit",
           WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status));
  say(answer);
}

/* Forks sleeping processes until it can't, answers how many there were, and leaves them. */
static void do_breed(char **a)
{
  long n = 0, max = strtol(a[1], NULL, 10);
  while (n < max) {
    pid_t pid = fork();
    if (pid == 0) {
      close(TALK);
      for (;;)
        pause();
    }
    if (pid < 0)
      break;
    n++;
  }
  snprintf(answer, sizeof(answer), "ok %ld %s", n, n < max ? strerrorname_np(errno) : "-");
  say(answer);
}

static void do_spin(char **a)
{
  (void)a;
  pid_t pid = fork();
  if (pid == 0) {
    close(TALK);
    for (volatile unsigned long i = 0;; i++)
      ;
  }
  result(pid);
}

static void do_bomb(char **a)
{
  (void)a;
  pid_t pid = fork();
  if (pid == 0) {
    close(TALK);
    for (;;)
      fork();
  }
  result(pid);
}

static void do_call(char **a)
{
  long v[6] = {0};
  for (int i = 0; i < 6 && a[2 + i]; i++)
    v[i] = strtol(a[2 + i], NULL, 0);
  result(syscall(strtol(a[1], NULL, 0), v[0], v[1], v[2], v[3], v[4], v[5]));
}

static void do_fill(char **a)
{
  static char block[1 << 20];
  int fd = open(a[1], O_WRONLY | O_CREAT | O_TRUNC, 0644);
  unsigned long long max = strtoull(a[2], NULL, 10), n = 0;
  ssize_t k = 0;
  memset(block, 'x', sizeof(block));
  while (fd >= 0 && n < max && (k = write(fd, block, sizeof(block))) > 0)
    n += (unsigned long long)k;
  int code = fd < 0 || k < 0 ? errno : 0;
  if (!code && fsync(fd))
    code = errno;
  if (fd >= 0)
    close(fd);
  snprintf(answer, sizeof(answer), "ok %llu %s", n, code ? strerrorname_np(code) : "-");
  say(answer);
}

static void do_files(char **a)
{
  char path[256];
  long n = 0, max = strtol(a[2], NULL, 10);
  int code = mkdir(a[1], 0755) && errno != EEXIST ? errno : 0;
  for (; !code && n < max; n++) {
    snprintf(path, sizeof(path), "%s/%ld", a[1], n);
    int fd = open(path, O_WRONLY | O_CREAT, 0600);
    if (fd < 0) {
      code = errno;
      break;
    }
    close(fd);
  }
  snprintf(answer, sizeof(answer), "ok %ld %s", n, code ? strerrorname_np(code) : "-");
  say(answer);
}

/* Keeps what it gets in a process of its own, tells how many there were and why it was no more. */
static void hoard(long max, int (*take)(void))
{
  int pipe_fds[2];
  long n = 0;
  if (pipe(pipe_fds))
    return result(-1);
  pid_t pid = fork();
  if (pid == 0) {
    close(TALK);
    while (n < max && take() >= 0)
      n++;
    const char *why = n < max ? strerrorname_np(errno) : "-";
    int k = snprintf(answer, sizeof(answer), "ok %ld %s", n, why);
    ssize_t unused = write(pipe_fds[1], answer, (size_t)k);
    (void)unused;
    for (;;)
      pause();
  }
  close(pipe_fds[1]);
  ssize_t k = pid < 0 ? -1 : read(pipe_fds[0], answer, sizeof(answer) - 1);
  close(pipe_fds[0]);
  if (k < 0)
    return result(-1);
  answer[k] = 0;
  say(k ? answer : "ok 0 killed");
}
static int take_file(void)
{
  return open("/dev/null", O_RDONLY);
}
static int take_inotify(void)
{
  return inotify_init1(IN_CLOEXEC);
}
static int take_pty(void)
{
  return posix_openpt(O_RDWR | O_NOCTTY);
}
static int take_pipe(void)
{
  static char block[65536];
  int p[2];
  if (pipe2(p, O_NONBLOCK))
    return -1;
  return write(p[1], block, sizeof(block)) < 0 ? -1 : 0;
}
static int take_segment(void)
{
  int id = shmget(IPC_PRIVATE, 1 << 20, IPC_CREAT | 0600);
  char *p = id < 0 ? (char *)-1 : shmat(id, NULL, 0);
  if (p == (char *)-1)
    return -1;
  memset(p, 1, 1 << 20);
  return 0;
}
static int take_timer(void)
{
  timer_t t;
  return timer_create(CLOCK_MONOTONIC, NULL, &t);
}
static const struct {
  const char *what;
  int (*take)(void);
} hoards[] = {{"files", take_file}, {"inotify", take_inotify},  {"ptys", take_pty},
              {"pipes", take_pipe}, {"segments", take_segment}, {"timers", take_timer}};
static void do_hoard(char **a)
{
  for (size_t i = 0; i < sizeof(hoards) / sizeof(hoards[0]); i++)
    if (!strcmp(a[1], hoards[i].what))
      return hoard(strtol(a[2], NULL, 10), hoards[i].take);
  say("errno EBADRQC");
}

/* Processes that die of SIGSEGV, one after the other. */
static void do_crash(char **a)
{
  long n = strtol(a[1], NULL, 10);
  for (long i = 0; i < n; i++) {
    pid_t pid = fork();
    if (pid == 0) {
      signal(SIGSEGV, SIG_DFL);
      raise(SIGSEGV);
      _exit(0);
    }
    if (pid < 0 || waitpid(pid, NULL, 0) < 0)
      return result(-1);
  }
  result(n);
}

/* Lines to standard output for so many milliseconds. */
static void do_flood(char **a)
{
  struct timespec from, now;
  long ms = strtol(a[1], NULL, 10), n = 0;
  clock_gettime(CLOCK_MONOTONIC, &from);
  do {
    for (int i = 0; i < 100; i++, n++)
      if (write(1, "a line of a flood of lines that never ends\n", 43) < 0)
        return result(-1);
    clock_gettime(CLOCK_MONOTONIC, &now);
  } while ((now.tv_sec - from.tv_sec) * 1000 + (now.tv_nsec - from.tv_nsec) / 1000000 < ms);
  result(n);
}

static void do_fds(char **a)
{
  (void)a;
  DIR *d = opendir("/proc/self/fd");
  size_t n = (size_t)snprintf(answer, sizeof(answer), "ok");
  char link[300], target[200];
  for (struct dirent *e; d && (e = readdir(d));) {
    if (e->d_name[0] == '.' || strtol(e->d_name, NULL, 10) == dirfd(d))
      continue;
    snprintf(link, sizeof(link), "/proc/self/fd/%s", e->d_name);
    ssize_t k = readlink(link, target, sizeof(target) - 1);
    target[k > 0 ? k : 0] = 0;
    n += (size_t)snprintf(answer + n, sizeof(answer) - n, " %s=%s", e->d_name, target);
  }
  if (d)
    closedir(d);
  say(answer);
}

static int dial(int type, const char *address, const char *port, int milliseconds)
{
  struct sockaddr_in sa = {.sin_family = AF_INET, .sin_port = htons((uint16_t)strtoul(port, NULL, 10))};
  struct timeval limit = {milliseconds / 1000, milliseconds % 1000 * 1000};
  int s = socket(AF_INET, type | SOCK_CLOEXEC, 0);
  if (s < 0 || inet_pton(AF_INET, address, &sa.sin_addr) != 1)
    return -1;
  setsockopt(s, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof(limit));
  setsockopt(s, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
  if (connect(s, (struct sockaddr *)&sa, sizeof(sa)) == 0)
    return s;
  int code = errno;
  close(s);
  errno = code;
  return -1;
}

static void hear(int s)
{
  memcpy(answer, "ok ", 3);
  ssize_t n = s < 0 ? -1 : recv(s, answer + 3, sizeof(answer) - 4, 0);
  int code = errno;
  if (s >= 0)
    close(s);
  errno = code;
  if (n < 0)
    return result(-1);
  answer[3 + n] = 0;
  say(answer);
}

static void do_connect(char **a)
{
  hear(dial(SOCK_STREAM, a[1], a[2], 3000));
}

static void do_udp(char **a)
{
  int s = dial(SOCK_DGRAM, a[1], a[2], 1500);
  if (s >= 0 && send(s, a[3], strlen(a[3]), 0) < 0)
    return result(-1);
  hear(s);
}

/* Sends so many bytes, waits until the other side has read them all, tells the milliseconds. */
static void do_push(char **a)
{
  static char block[16384];
  struct timespec from, to;
  long left = strtol(a[3], NULL, 10);
  int s = dial(SOCK_STREAM, a[1], a[2], 30000);
  clock_gettime(CLOCK_MONOTONIC, &from);
  while (s >= 0 && left > 0) {
    ssize_t n = write(s, block, left < (long)sizeof(block) ? (size_t)left : sizeof(block));
    if (n < 0)
      return result(-1);
    left -= n;
  }
  if (s < 0 || shutdown(s, SHUT_WR) || read(s, block, 1) != 0)
    return result(-1);
  close(s);
  clock_gettime(CLOCK_MONOTONIC, &to);
  result((to.tv_sec - from.tv_sec) * 1000 + (to.tv_nsec - from.tv_nsec) / 1000000);
}

/* Asks a name server for the A record of a name: "ok ADDRESS", "ok rcode N". */
static void do_resolve(char **a)
{
  unsigned char m[512] = {0x12, 0x34, 1, 0, 0, 1};
  size_t n = 12;
  char *rest = a[2], text[INET_ADDRSTRLEN];
  for (char *label; (label = strsep(&rest, ".")) && n + strlen(label) < 400;) {
    m[n++] = (unsigned char)strlen(label);
    memcpy(m + n, label, strlen(label));
    n += strlen(label);
  }
  static const unsigned char tail[5] = {0, 0, 1, 0, 1};
  memcpy(m + n, tail, sizeof(tail));
  n += sizeof(tail);
  int s = dial(SOCK_DGRAM, a[1], "53", 3000);
  ssize_t k = s < 0 || send(s, m, n, 0) < 0 ? -1 : recv(s, m, sizeof(m), 0);
  int code = errno;
  if (s >= 0)
    close(s);
  errno = code;
  if (k < 12)
    return result(-1);
  if (m[3] & 15)
    snprintf(answer, sizeof(answer), "ok rcode %d", m[3] & 15);
  else
    snprintf(answer, sizeof(answer), "ok %s", inet_ntop(AF_INET, m + k - 4, text, sizeof(text)));
  say(answer);
}

/* Opens connections to one port and keeps them; tells how many came about. */
static void do_hold(char **a)
{
  long n = 0, max = strtol(a[3], NULL, 10);
  while (n < max && dial(SOCK_STREAM, a[1], a[2], 1000) >= 0)
    n++;
  snprintf(answer, sizeof(answer), "ok %ld", n);
  say(answer);
}

/* A UDP packet with a source address that is not the box's. */
static void do_spoof(char **a)
{
  struct {
    struct iphdr ip;
    struct udphdr udp;
    char text[5];
  } __attribute__((packed)) p = {.ip = {.version = 4, .ihl = 5, .ttl = 64, .protocol = IPPROTO_UDP},
                                 .udp = {.source = htons(4000), .len = htons(13)},
                                 .text = "spoof"};
  struct sockaddr_in to = {.sin_family = AF_INET};
  int s = socket(AF_INET, SOCK_RAW | SOCK_CLOEXEC, IPPROTO_RAW);
  p.udp.dest = htons((uint16_t)strtoul(a[3], NULL, 10));
  if (s < 0 || inet_pton(AF_INET, a[1], &p.ip.saddr) != 1 || inet_pton(AF_INET, a[2], &to.sin_addr) != 1)
    return result(-1);
  p.ip.daddr = to.sin_addr.s_addr;
  ssize_t n = sendto(s, &p, sizeof(p), 0, (struct sockaddr *)&to, sizeof(to));
  close(s);
  result(n);
}

static void do_xattr(char **a)
{
  result(setxattr(a[1], a[2], a[3], strlen(a[3]), 0));
}
static void do_mkdir(char **a)
{
  result(mkdir(a[1], 0755));
}
static void do_rename(char **a)
{
  result(rename(a[1], a[2]));
}
static void do_unlink(char **a)
{
  result(unlink(a[1]));
}
static void do_chown(char **a)
{
  result(lchown(a[1], (uid_t)strtoul(a[2], NULL, 10), (gid_t)strtoul(a[3], NULL, 10)));
}
static void do_symlink(char **a)
{
  result(symlink(a[1], a[2]));
}
static void do_link(char **a)
{
  result(link(a[1], a[2]));
}
static void do_chmod(char **a)
{
  result(chmod(a[1], (mode_t)strtoul(a[2], NULL, 8)));
}
static void do_mknod(char **a)
{
  result(mknod(a[1], S_IFCHR | 0666, 0x103)); /* /dev/null */
}
static void do_rmdir(char **a)
{
  result(rmdir(a[1]));
}
/* MiB that the filesystem has in all, and its flags. */
static void do_space(char **a)
{
  struct statvfs fs;
  if (statvfs(a[1], &fs))
    return result(-1);
  snprintf(answer, sizeof(answer), "ok %llu %lx", (unsigned long long)fs.f_blocks * fs.f_frsize >> 20, fs.f_flag);
  say(answer);
}
static void do_hello(char **a)
{
  (void)a;
  char host[65] = "";
  gethostname(host, sizeof(host) - 1);
  snprintf(answer, sizeof(answer), "ok pid %d uid %d gid %d host %s", getpid(), getuid(), getgid(), host);
  say(answer);
}
static void do_exit(char **a)
{
  _exit((int)strtol(a[1], NULL, 10));
}

static const struct {
  const char *verb;
  int args;
  void (*run)(char **a);
} verbs[] = {
    {"hello", 0, do_hello},     {"read", 1, do_read},       {"write", 2, do_write},     {"list", 1, do_list},
    {"stat", 1, do_stat},       {"listen", 1, do_listen},   {"eat", 1, do_eat},         {"breed", 1, do_breed},
    {"spin", 0, do_spin},       {"bomb", 0, do_bomb},       {"call", 1, do_call},       {"fill", 2, do_fill},
    {"files", 2, do_files},     {"fds", 0, do_fds},         {"xattr", 3, do_xattr},     {"mkdir", 1, do_mkdir},
    {"rename", 2, do_rename},   {"unlink", 1, do_unlink},   {"chown", 3, do_chown},     {"exit", 1, do_exit},
    {"connect", 2, do_connect}, {"udp", 3, do_udp},         {"hold", 3, do_hold},       {"spoof", 3, do_spoof},
    {"push", 3, do_push},       {"hoard", 2, do_hoard},     {"resolve", 2, do_resolve}, {"crash", 1, do_crash},
    {"flood", 1, do_flood},     {"symlink", 2, do_symlink}, {"link", 2, do_link},       {"chmod", 2, do_chmod},
    {"mknod", 1, do_mknod},     {"rmdir", 1, do_rmdir},     {"space", 1, do_space},
};

static void serve(char *line)
{
  char *a[ARGS + 1] = {0};
  int n = 0;
  for (char *w; n < ARGS && (w = strsep(&line, " "));)
    a[n++] = w;
  for (size_t i = 0; n > 0 && i < sizeof(verbs) / sizeof(verbs[0]); i++)
    if (!strcmp(a[0], verbs[i].verb) && n > verbs[i].args)
      return verbs[i].run(a);
  say("errno EBADRQC");
}

int main(void)
{
  static char line[8192];
  signal(SIGCHLD, SIG_DFL);
  for (ssize_t n; (n = recv(TALK, line, sizeof(line) - 1, 0)) > 0;) {
    line[n] = 0;
    serve(line);
  }
  for (;;)
    pause();
}
