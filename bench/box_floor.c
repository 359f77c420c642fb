/* box_floor.c - what the kernel asks for a bare box: clone with seven namespaces, id maps, an overlay, /proc, pivot_root and
 * the exec of a static program, until that program's first word. No cgroup, no network device, no agent.
 *
 *   box_floor DIR [COUNT]
 *
 * DIR must not exist; it is made and removed. Needs root. Prints {"spaced_ms":[...],"tight_ms":[...]}: births 150 ms
 * apart and one right after the other. */
#include "base/base.h"

#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/sendfile.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>

#define ID_BASE 1600000000u
#define WALLS   (CLONE_NEWUSER | CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWNET | CLONE_NEWIPC | CLONE_NEWUTS | CLONE_NEWCGROUP)

static int64_t now_ns(void)
{
  struct timespec ts;
  clock_gettime(CLOCK_MONOTONIC, &ts);
  return (int64_t)ts.tv_sec * 1000000000 + ts.tv_nsec;
}

static void must(bool good, const char *what)
{
  if (good)
    return;
  perror(what);
  exit(1);
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
  cleanup_fd int self = open("/proc/self/exe", O_RDONLY | O_CLOEXEC), copy = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0755);
  struct stat st;
  must(self >= 0 && copy >= 0 && !fstat(self, &st) && sendfile(copy, self, NULL, (size_t)st.st_size) == st.st_size, path);
}

static void live(const char *dir, int go, int out)
{
  char c, options[2048], merged[600];
  must(read(go, &c, 1) == 1, "go");
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

static double birth(const char *base, unsigned i)
{
  static const char *const parts[] = {"", "/upper", "/work", "/merged"};
  char dir[300], path[400], c;
  int go[2], out[2];
  snprintf(dir, sizeof(dir), "%s/box%u", base, i);
  for (size_t k = 0; k < ARRAY_LEN(parts); k++) {
    snprintf(path, sizeof(path), "%s%s", dir, parts[k]);
    make(path);
  }
  must(!pipe2(go, O_CLOEXEC) && !pipe2(out, O_CLOEXEC), "pipe");
  int64_t began = now_ns();
  pid_t pid = (pid_t)syscall(SYS_clone, WALLS | SIGCHLD, NULL, NULL, NULL, 0);
  must(pid >= 0, "clone");
  if (!pid)
    live(dir, go[0], out[1]);
  map_ids(pid);
  must(write(go[1], "x", 1) == 1, "go");
  close(out[1]);
  must(read(out[0], &c, 1) == 1, "the first word");
  double ms = (double)(now_ns() - began) / 1e6;
  int status;
  must(waitpid(pid, &status, 0) == pid && WIFEXITED(status) && !WEXITSTATUS(status), "the box's end");
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

static void births(const char *dir, const char *name, unsigned from, unsigned count, long pause_ns)
{
  printf("\"%s\":[", name);
  for (unsigned i = 0; i < count; i++) {
    nanosleep(&(struct timespec){.tv_nsec = pause_ns}, NULL);
    printf("%s%.4f", i ? "," : "", birth(dir, from + i));
    fflush(stdout); /* a child must not write it again */
  }
}

int main(int argc, char **argv)
{
  uint64_t count = 40;
  if (argc > 1 && !strcmp(argv[1], "--say"))
    return write(1, "x", 1) == 1 ? 0 : 1;
  if (argc < 2 || argc > 3 || strlen(argv[1]) > 200 || (argc == 3 && (str_u64(str_of(argv[2]), &count) || count > 10000))) {
    fprintf(stderr, "usage: box_floor DIR [COUNT]\n");
    return 2;
  }
  lay_ground(argv[1]);
  printf("{");
  births(argv[1], "spaced_ms", 0, (unsigned)count, 150000000);
  printf("],");
  births(argv[1], "tight_ms", (unsigned)count, (unsigned)count, 0);
  printf("]}\n");
  sweep(argv[1]);
  return 0;
}
