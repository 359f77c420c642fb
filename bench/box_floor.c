/* SPDX-License-Identifier: Apache-2.0 */
/* box_floor.c - what the kernel asks for a bare box: clone with seven namespaces, id maps, an overlay, /proc,
 * pivot_root and the exec of a static program, until that program's first word. No agent, and nothing of Cloche.
 *
 *   box_floor DIR [COUNT]
 *
 * DIR must not exist; it is made and removed. Needs root. Prints
 * {"spaced_ms":[...],"tight_ms":[...],"isolated_ms":[...], "per_second":[...]}: launches 150 ms apart, one right after
 * the other, 150 ms apart with three control groups and a veth pair (whose host end gets no address), and how many bare
 * ones two workers make in a second. */
#include "floor_namespaces.h"

#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/sendfile.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>

#define ID_BASE 1600000000u
#define NAMESPACES                                                                                                     \
  (CLONE_NEWUSER | CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWNET | CLONE_NEWIPC | CLONE_NEWUTS | CLONE_NEWCGROUP)

static int64_t now_ns(void)
{
  struct timespec ts;
  clock_gettime(CLOCK_MONOTONIC, &ts);
  return (int64_t)ts.tv_sec * 1000000000 + ts.tv_nsec;
}

static void put(const char *path, const char *text)
{
  cleanup_fd int fd = open(path, O_WRONLY | O_CLOEXEC);
  must(fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text), path);
}

static void make(const char *path)
{
  must(!mkdir(path, 0755) && !chown(path, ID_BASE, ID_BASE), path);
}

/* The template: this program, and a place for /proc. */
static void lay_ground(const char *dir)
{
  char path[600];
  make(dir);
  snprintf(path, sizeof(path), "%s/lower", dir);
  make(path);
  snprintf(path, sizeof(path), "%s/lower/proc", dir);
  make(path);
  snprintf(path, sizeof(path), "%s/lower/word", dir);
  cleanup_fd int self = open("/proc/self/exe", O_RDONLY | O_CLOEXEC),
                 copy = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0755);
  struct stat st;
  must(self >= 0 && copy >= 0 && !fstat(self, &st) && sendfile(copy, self, NULL, (size_t)st.st_size) == st.st_size,
       path);
}

static void live(const char *dir, struct groups *groups, int go, int out)
{
  char c, options[2048], merged[600];
  prctl(PR_SET_PDEATHSIG, SIGKILL); /* not to wait for a parent that failed */
  must(read(go, &c, 1) == 1, "go");
  groups_enter(groups);
  must(!setresgid(0, 0, 0) && !setresuid(0, 0, 0), "root of the box");
  must(!mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL), "private");
  snprintf(options, sizeof(options), "lowerdir=%s/../lower,upperdir=%s/upper,workdir=%s/work", dir, dir, dir);
  snprintf(merged, sizeof(merged), "%s/merged", dir);
  must(!mount("overlay", merged, "overlay", 0, options), "overlay");
  must(!chdir(merged) && !mount("proc", "proc", "proc", 0, NULL), "proc");
  must(!syscall(SYS_pivot_root, ".", ".") && !umount2(".", MNT_DETACH) && !chdir("/"), "pivot_root");
  dup2(out, 1);
  execl("/word", "/word", "--say", NULL);
  must(false, "exec");
}

static void map_ids(pid_t pid)
{
  char path[64], text[64];
  snprintf(text, sizeof(text), "0 %u 65536\n", ID_BASE);
  snprintf(path, sizeof(path), "/proc/%d/uid_map", pid);
  put(path, text);
  snprintf(path, sizeof(path), "/proc/%d/gid_map", pid);
  put(path, text);
}

static void make_dirs(const char *base, unsigned i)
{
  static const char *const parts[] = {"", "/upper", "/work", "/merged"};
  char path[400];
  for (size_t k = 0; k < ARRAY_LEN(parts); k++) {
    snprintf(path, sizeof(path), "%s/box%u%s", base, i, parts[k]);
    make(path);
  }
}

static double launch(const char *base, unsigned i, bool isolated)
{
  char dir[300], c;
  int go[2], out[2];
  struct groups groups = {.n = 0};
  snprintf(dir, sizeof(dir), "%s/box%u", base, i);
  must(!pipe2(go, O_CLOEXEC) && !pipe2(out, O_CLOEXEC), "pipe");
  int64_t began = now_ns();
  if (isolated)
    groups_make(&groups, i);
  pid_t pid = (pid_t)syscall(SYS_clone, NAMESPACES | SIGCHLD, NULL, NULL, NULL, 0);
  must(pid >= 0, "clone");
  if (!pid)
    live(dir, &groups, go[0], out[1]);
  map_ids(pid);
  if (isolated)
    veth_make(pid, i);
  must(write(go[1], "x", 1) == 1, "go");
  close(out[1]);
  must(read(out[0], &c, 1) == 1, "the first word");
  double ms = (double)(now_ns() - began) / 1e6;
  int status;
  must(waitpid(pid, &status, 0) == pid && WIFEXITED(status) && !WEXITSTATUS(status), "the box's end");
  groups_close(&groups);
  close(go[0]);
  close(go[1]);
  close(out[0]);
  return ms;
}

static void sweep(const char *dir)
{
  pid_t pid = fork();
  if (!pid) {
    execlp("rm", "rm", "-rf", "--one-file-system", dir, NULL);
    _exit(1);
  }
  waitpid(pid, NULL, 0);
}

static unsigned numbers; /* of boxes, given out once each */

static void launches(const char *dir, const char *name, unsigned count, long pause_ns, bool isolated)
{
  printf("\"%s\":[", name);
  for (unsigned i = 0; i < count; i++, numbers++) {
    make_dirs(dir, numbers);
    nanosleep(&(struct timespec){.tv_nsec = pause_ns}, NULL);
    printf("%s%.4f", i ? "," : "", launch(dir, numbers, isolated));
    fflush(stdout); /* a child must not write it again */
  }
  printf("],");
}

/* ---- as many as there can be ---- */

#define WORKERS  2
#define DIRS     50u /* of a worker, in turns: the last one's mounts may still be going */
#define ROUND_NS 1500000000
#define ROUNDS   3

static pid_t worker(const char *dir, unsigned from, int go, int done)
{
  char c;
  unsigned i = 0;
  pid_t pid = fork();
  must(pid >= 0, "fork");
  if (pid)
    return pid;
  must(read(go, &c, 1) == 1, "a worker's start");
  for (int64_t until = now_ns() + ROUND_NS; now_ns() < until; i++)
    launch(dir, from + i % DIRS, false);
  must(write(done, &i, sizeof(i)) == sizeof(i), "a worker's count");
  _exit(0);
}

static double parallel_rate(const char *dir)
{
  int go[2], done[2], status;
  unsigned all = 0, n;
  pid_t workers[WORKERS];
  must(!pipe2(go, O_CLOEXEC) && !pipe2(done, O_CLOEXEC), "pipe");
  for (unsigned i = 0; i < WORKERS * DIRS; i++)
    make_dirs(dir, numbers + i);
  for (unsigned i = 0; i < WORKERS; i++, numbers += DIRS)
    workers[i] = worker(dir, numbers, go[0], done[1]);
  nanosleep(&(struct timespec){.tv_nsec = 200000000}, NULL);
  int64_t began = now_ns();
  must(write(go[1], "xx", WORKERS) == WORKERS, "the start");
  for (unsigned i = 0; i < WORKERS; i++, all += n) {
    must(waitpid(workers[i], &status, 0) == workers[i] && WIFEXITED(status) && !WEXITSTATUS(status), "a worker's end");
    must(read(done[0], &n, sizeof(n)) == sizeof(n), "a worker's count");
  }
  double seconds = (double)(now_ns() - began) / 1e9;
  for (unsigned i = 0; i < 2; i++) {
    close(go[i]);
    close(done[i]);
  }
  return all / seconds;
}

static void parallel_rates(const char *dir)
{
  printf("\"per_second\":[");
  for (unsigned i = 0; i < ROUNDS; i++) {
    printf("%s%.1f", i ? "," : "", parallel_rate(dir));
    fflush(stdout);
  }
  printf("]}\n");
}

int main(int argc, char **argv)
{
  uint64_t count = 40;
  if (argc > 1 && !strcmp(argv[1], "--say"))
    return write(1, "x", 1) == 1 ? 0 : 1;
  if (argc < 2 || argc > 3 || strlen(argv[1]) > 200 ||
      (argc == 3 && (str_u64(str_of(argv[2]), &count) || count > 10000))) {
    fprintf(stderr, "usage: box_floor DIR [COUNT]\n");
    return 2;
  }
  lay_ground(argv[1]);
  groups_begin();
  printf("{");
  launches(argv[1], "spaced_ms", (unsigned)count, 150000000, false);
  launches(argv[1], "tight_ms", (unsigned)count, 0, false);
  launches(argv[1], "isolated_ms", (unsigned)count, 150000000, true);
  fflush(stdout);
  parallel_rates(argv[1]);
  sweep(argv[1]);
  return 0;
}
