/* SPDX-License-Identifier: Apache-2.0 */
/* checkpoint_guest.c - the small static program whose life checkpoint tests interrupt.
 *
 * Pid 1 of its box, with nothing open to the outside: it listens on 127.0.0.1:7000 and answers one line per
 * connection, "ok ..." or "errno NAME". It gathers state of every kind that a checkpoint has to hold, and is asked for
 * it again afterwards. */
#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/inotify.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/timerfd.h>
#include <sys/wait.h>
#include <termios.h>
#include <time.h>
#include <unistd.h>

#define PORT 7000
#define ARGS 4
static char answer[32768];

static void result(long r)
{
  if (r < 0)
    snprintf(answer, sizeof(answer), "errno %s", strerrorname_np(errno));
  else
    snprintf(answer, sizeof(answer), "ok %ld", r);
}

static void words(const char *text, ssize_t n)
{
  if (n < 0)
    return result(-1);
  snprintf(answer, sizeof(answer), "ok %.*s", (int)n, text);
}

/* --- memory and files ----------------------------------------------------------------------------------------- */

static long counter;
static unsigned char *memory;
static size_t memory_bytes;
static int ghost = -1;

static void do_count(char **a)
{
  (void)a;
  result(++counter);
}

/* Half of it stays zero: pages that need no place in a checkpoint. */
static void do_eat(char **a)
{
  unsigned x = 1;
  memory_bytes = strtoul(a[1], NULL, 10) << 20;
  memory = mmap(NULL, memory_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED)
    return result(-1);
  for (size_t i = 0; i < memory_bytes; i++) {
    x = x * 1103515245 + 12345;
    memory[i] = i < memory_bytes / 2 ? (unsigned char)(x >> 16) : 0;
  }
  result((long)memory_bytes);
}

static void do_sum(char **a)
{
  unsigned sum = 0;
  (void)a;
  for (size_t i = 0; i < memory_bytes; i++)
    sum = sum * 31 + memory[i];
  result(sum);
}

static void do_write(char **a)
{
  int fd = open(a[1], O_WRONLY | O_CREAT | O_TRUNC, 0644);
  ssize_t n = fd < 0 ? -1 : write(fd, a[2], strlen(a[2]));
  if (fd >= 0)
    close(fd);
  result(n);
}

static void do_read(char **a)
{
  static char text[32000];
  int fd = open(a[1], O_RDONLY);
  ssize_t n = fd < 0 ? -1 : 0, k = 0;
  while (fd >= 0 && n < (ssize_t)sizeof(text) && (k = read(fd, text + n, sizeof(text) - (size_t)n)) > 0)
    n += k;
  if (fd >= 0)
    close(fd);
  words(text, k < 0 ? k : n);
}

static void do_ghost(char **a)
{
  ghost = open("/tmp/ghost", O_RDWR | O_CREAT | O_EXCL, 0600);
  result(ghost < 0 || write(ghost, a[1], strlen(a[1])) < 0 ? -1 : unlink("/tmp/ghost"));
}

static void do_ghost_read(char **a)
{
  char text[100];
  (void)a;
  words(text, pread(ghost, text, sizeof(text), 0));
}

/* An open file loses the name it was opened by and keeps another. */
static int loser = -1;

static void do_lose(char **a)
{
  loser = open(a[1], O_RDWR | O_CREAT | O_EXCL, 0644);
  result(loser < 0 || link(a[1], a[2]) ? -1 : unlink(a[1]));
}

static void do_lose_write(char **a)
{
  result(write(loser, a[1], strlen(a[1])));
}

/* A file that stays open, and a working directory. */
static int kept = -1;

static void do_keep(char **a)
{
  kept = open(a[1], O_RDWR | O_CREAT, 0644);
  result(kept < 0 ? -1 : 0);
}

static void do_keep_write(char **a)
{
  result(write(kept, a[1], strlen(a[1])));
}

static void do_cd(char **a)
{
  result(chdir(a[1]));
}

static void do_where(char **a)
{
  (void)a;
  char at[4096];
  snprintf(answer, sizeof(answer), "ok %s", getcwd(at, sizeof(at)) ? at : "?");
}

static void do_name(char **a)
{
  result(link(a[1], a[2]));
}

static void do_rename(char **a)
{
  result(rename(a[1], a[2]));
}

static void do_list(char **a)
{
  char text[4000] = "";
  size_t n = 0;
  DIR *d = opendir(a[1]);
  for (struct dirent *e; d && (e = readdir(d)) && n + strlen(e->d_name) + 1 < sizeof(text);)
    if (e->d_name[0] != '.')
      n += (size_t)snprintf(text + n, sizeof(text) - n, "%s%s", n ? " " : "", e->d_name);
  if (d)
    closedir(d);
  words(text, d ? (ssize_t)n : -1);
}

/* --- connections inside the box ------------------------------------------------------------------------------- */

static int tcp[2] = {-1, -1}, unix_pair[2] = {-1, -1}, pty = -1, watch = -1, timer = -1, many = -1, event = -1;

static void do_tcp(char **a)
{
  struct sockaddr_in to = {.sin_family = AF_INET, .sin_addr.s_addr = inet_addr(a[1]), .sin_port = htons(7100)};
  int listener = socket(AF_INET, SOCK_STREAM, 0);
  tcp[0] = socket(AF_INET, SOCK_STREAM, 0);
  if (bind(listener, (struct sockaddr *)&to, sizeof(to)) || listen(listener, 8) ||
      connect(tcp[0], (struct sockaddr *)&to, sizeof(to)))
    return result(-1);
  tcp[1] = accept(listener, NULL, NULL);
  result(tcp[1]);
}

static void pass(const int pair[2], const char *text)
{
  char got[200];
  ssize_t n = write(pair[0], text, strlen(text));
  words(got, n < 0 ? n : read(pair[1], got, sizeof(got)));
}

static void do_tcp_talk(char **a)
{
  pass(tcp, a[1]);
}

static void do_unix(char **a)
{
  (void)a;
  result(socketpair(AF_UNIX, SOCK_STREAM, 0, unix_pair) ? -1 : write(unix_pair[0], "kept ", 5));
}

static void do_unix_talk(char **a)
{
  pass(unix_pair, a[1]);
}

/* A child on a terminal that answers every line with the number of lines it has had. */
static void do_pty(char **a)
{
  char name[64];
  (void)a;
  pty = open("/dev/ptmx", O_RDWR | O_NOCTTY);
  if (pty < 0 || grantpt(pty) || unlockpt(pty) || ptsname_r(pty, name, sizeof(name)))
    return result(-1);
  pid_t pid = fork();
  if (pid == 0) {
    char line[100];
    setsid();
    int tty = open(name, O_RDWR);
    for (int i = 1; read(tty, line, sizeof(line)) > 0; i++)
      dprintf(tty, "line %d\n", i);
    _exit(0);
  }
  result(pid);
}

static void do_pty_talk(char **a)
{
  char text[400];
  ssize_t n = 0, k = write(pty, "x\n", 2);
  struct pollfd p = {.fd = pty, .events = POLLIN};
  (void)a;
  while (k >= 0 && n < 300 && poll(&p, 1, 500) == 1 && (k = read(pty, text + n, 50)) > 0 &&
         !memmem(text, (size_t)(n += k), "line", 4))
    ;
  for (ssize_t i = 0; i < n; i++)
    if (text[i] < ' ')
      text[i] = ' ';
  words(text, n);
}

static void do_watch(char **a)
{
  watch = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
  result(inotify_add_watch(watch, a[1], IN_CREATE));
}

static void do_watch_hear(char **a)
{
  union {
    struct inotify_event e;
    char bytes[1024];
  } u = {0};
  ssize_t n = read(watch, &u, sizeof(u));
  (void)a;
  words(u.e.name, n < 0 ? n : (ssize_t)strlen(u.e.name));
}

/* A timer that runs, an event that is pending, and something that waits for both. */
static void do_events(char **a)
{
  struct itimerspec t = {.it_value.tv_sec = 3600, .it_interval.tv_sec = 1};
  (void)a;
  timer = timerfd_create(CLOCK_MONOTONIC, 0);
  event = eventfd(7, 0);
  many = epoll_create1(0);
  epoll_ctl(many, EPOLL_CTL_ADD, timer, &(struct epoll_event){.events = EPOLLIN, .data.fd = timer});
  result(timerfd_settime(timer, 0, &t, NULL)
             ? -1
             : epoll_ctl(many, EPOLL_CTL_ADD, event, &(struct epoll_event){.events = EPOLLIN, .data.fd = event}));
}

static void do_events_hear(char **a)
{
  struct epoll_event e = {0};
  struct itimerspec t = {0};
  eventfd_t v = 0;
  (void)a;
  int n = epoll_wait(many, &e, 1, 1000);
  eventfd_read(event, &v);
  timerfd_gettime(timer, &t);
  snprintf(answer, sizeof(answer), "ok %d event %d timer %d", n, (int)v,
           t.it_value.tv_sec > 3000 && t.it_value.tv_sec <= 3600);
}

/* --- other processes ------------------------------------------------------------------------------------------ */

static volatile long *shared;

static void do_worker(char **a)
{
  (void)a;
  shared = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  pid_t pid = fork();
  if (pid == 0)
    for (;;) {
      ++*shared;
      usleep(2000);
    }
  result(pid);
}

static void do_worker_read(char **a)
{
  (void)a;
  result(*shared);
}

static void do_traced(char **a)
{
  (void)a;
  pid_t pid = fork();
  if (pid == 0) {
    ptrace(PTRACE_TRACEME, 0, 0, 0);
    raise(SIGSTOP);
    for (;;)
      pause();
  }
  int status;
  result(waitpid(pid, &status, WUNTRACED) < 0 ? -1 : pid);
}

static void do_end(char **a)
{
  pid_t pid = (pid_t)strtol(a[1], NULL, 10);
  kill(pid, SIGKILL);
  result(waitpid(pid, NULL, 0));
}

/* --- who and when --------------------------------------------------------------------------------------------- */

static void do_hello(char **a)
{
  char host[65] = "";
  (void)a;
  gethostname(host, sizeof(host) - 1);
  snprintf(answer, sizeof(answer), "ok pid %d uid %d host %s", getpid(), getuid(), host);
}

static void do_clock(char **a)
{
  struct timespec mono, wall;
  (void)a;
  clock_gettime(CLOCK_MONOTONIC, &mono);
  clock_gettime(CLOCK_REALTIME, &wall);
  snprintf(answer, sizeof(answer), "ok %lld %lld", (long long)mono.tv_sec * 1000 + mono.tv_nsec / 1000000,
           (long long)wall.tv_sec);
}

static const struct {
  const char *verb;
  int args;
  void (*run)(char **a);
} verbs[] = {
    {"count", 0, do_count},
    {"eat", 1, do_eat},
    {"sum", 0, do_sum},
    {"write", 2, do_write},
    {"read", 1, do_read},
    {"ghost", 1, do_ghost},
    {"ghost-read", 0, do_ghost_read},
    {"lose", 2, do_lose},
    {"lose-write", 1, do_lose_write},
    {"keep", 1, do_keep},
    {"keep-write", 1, do_keep_write},
    {"cd", 1, do_cd},
    {"where", 0, do_where},
    {"name", 2, do_name},
    {"list", 1, do_list},
    {"rename", 2, do_rename},
    {"tcp", 1, do_tcp},
    {"tcp-talk", 1, do_tcp_talk},
    {"unix", 0, do_unix},
    {"unix-talk", 1, do_unix_talk},
    {"pty", 0, do_pty},
    {"pty-talk", 0, do_pty_talk},
    {"watch", 1, do_watch},
    {"watch-hear", 0, do_watch_hear},
    {"events", 0, do_events},
    {"events-hear", 0, do_events_hear},
    {"worker", 0, do_worker},
    {"worker-read", 0, do_worker_read},
    {"traced", 0, do_traced},
    {"end", 1, do_end},
    {"hello", 0, do_hello},
    {"clock", 0, do_clock},
};

static void serve(char *line)
{
  char *a[ARGS] = {0};
  int n = 0;
  line[strcspn(line, "\n")] = 0;
  for (char *word; n < ARGS && (word = strsep(&line, " "));)
    a[n++] = word;
  snprintf(answer, sizeof(answer), "errno EBADRQC");
  for (size_t i = 0; a[0] && i < sizeof(verbs) / sizeof(verbs[0]); i++)
    if (strcmp(a[0], verbs[i].verb) == 0 && n == verbs[i].args + 1)
      verbs[i].run(a);
}

int main(void)
{
  struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK), .sin_port = htons(PORT)};
  int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &(int){1}, sizeof(int));
  if (bind(listener, (struct sockaddr *)&at, sizeof(at)) || listen(listener, 64))
    return 3;
  for (;;) {
    char line[512];
    int fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
    ssize_t n = fd < 0 ? -1 : read(fd, line, sizeof(line) - 1);
    if (n > 0) {
      line[n] = 0;
      serve(line);
      n = write(fd, answer, strlen(answer));
    }
    if (fd >= 0)
      close(fd);
  }
}
