/* SPDX-License-Identifier: Apache-2.0 */
/* bait.c - see bait.h. */
#include "bait.h"

#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/shm.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>

#include <setjmp.h>
#include <cmocka.h>

struct bait bait;

/* --- the bait ------------------------------------------------------------------------------------------------- */

static void bait_process(void)
{
  bait.pid = fork();
  if (bait.pid == 0)
    for (;;)
      pause();
  assert_true(bait.pid > 0);
}

static void bait_sockets(void)
{
  struct sockaddr_in in = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
  struct sockaddr_un un = {.sun_family = AF_UNIX};
  socklen_t n = sizeof(in);
  bait.port_fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  assert_int_equal(bind(bait.port_fd, (struct sockaddr *)&in, sizeof(in)), 0);
  assert_int_equal(listen(bait.port_fd, 8), 0);
  assert_int_equal(getsockname(bait.port_fd, (struct sockaddr *)&in, &n), 0);
  bait.port = ntohs(in.sin_port);
  snprintf(bait.abstract, sizeof(bait.abstract), "cloche-bait-%d", getpid());
  memcpy(un.sun_path + 1, bait.abstract, strlen(bait.abstract));
  bait.abstract_fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  n = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + strlen(bait.abstract));
  assert_int_equal(bind(bait.abstract_fd, (struct sockaddr *)&un, n), 0);
  assert_int_equal(listen(bait.abstract_fd, 8), 0);
}

void bait_set(const struct test_host *h)
{
  bait_process();
  bait_sockets();
  bait.shm = shmget(getpid(), 4096, IPC_CREAT | IPC_EXCL | 0666);
  assert_true(bait.shm >= 0);
  snprintf(bait.file, sizeof(bait.file), "%s/bait", h->top);
  assert_int_equal(file_write_atomic(bait.file, "bait\n", 5, 0644), 0);
}

void bait_clear(void)
{
  kill(bait.pid, SIGKILL);
  waitpid(bait.pid, NULL, 0);
  shmctl(bait.shm, IPC_RMID, NULL);
  close(bait.port_fd);
  close(bait.abstract_fd);
}

const char *const *bait_facts(void)
{
  static char env[5][192];
  static const char *list[6];
  snprintf(env[0], sizeof(env[0]), "HOST_PID=%d", bait.pid);
  snprintf(env[1], sizeof(env[1]), "HOST_PORT=%d", bait.port);
  snprintf(env[2], sizeof(env[2]), "HOST_KEY=%d", getpid());
  snprintf(env[3], sizeof(env[3]), "HOST_FILE=%s", bait.file);
  snprintf(env[4], sizeof(env[4]), "HOST_ABSTRACT=%s", bait.abstract);
  for (size_t i = 0; i < 5; i++)
    list[i] = env[i];
  return list;
}

/* --- the host as it is ---------------------------------------------------------------------------------------- */

static void add_file(struct buf *b, const char *path)
{
  cleanup_buf struct buf text = BUF_INIT(1 << 20);
  int r = file_read(path, &text);
  uint8_t sum[SHA256_LEN];
  sha256_of(text.p, text.n, sum);
  buf_addf(b, "%s %d %02x%02x%02x%02x\n", path, r, sum[0], sum[1], sum[2], sum[3]);
}

static void add_stat(struct buf *b, const char *path)
{
  struct stat st;
  int r = stat(path, &st);
  buf_addf(b, "%s %d %o %u:%u %lld\n", path, r, r ? 0 : st.st_mode, r ? 0 : st.st_uid, r ? 0 : st.st_gid,
           r ? 0 : (long long)st.st_mtime);
}

/* The clock's distance from the monotonic one, in seconds: a box that set it would move it. */
static long clock_offset(void)
{
  return (long)((clock_wall_us() - clock_mono_us()) / 2000000);
}

void host_look(struct buf *b, const struct test_host *h, const struct box *box)
{
  static const char *const switches[] = {"/proc/sys/kernel/core_pattern",
                                         "/proc/sys/kernel/modprobe",
                                         "/proc/sys/kernel/hostname",
                                         "/proc/sys/kernel/panic",
                                         "/proc/sys/kernel/sysrq",
                                         "/proc/sys/kernel/dmesg_restrict",
                                         "/proc/sys/vm/panic_on_oom",
                                         "/proc/sys/fs/file-max",
                                         "/proc/irq/default_smp_affinity",
                                         "/proc/swaps",
                                         "/sys/kernel/uevent_helper",
                                         "/sys/kernel/mm/transparent_hugepage/enabled",
                                         "/proc/modules",
                                         "/sys/fs/cgroup/memory/release_agent"};
  char path[256];
  for (size_t i = 0; i < ARRAY_LEN(switches); i++)
    add_file(b, switches[i]);
  add_file(b, bait.file);
  add_stat(b, bait.file);
  snprintf(path, sizeof(path), "%s/etc/note", h->base);
  add_file(b, path);
  snprintf(path, sizeof(path), "%s/cloche/guest", h->extra);
  add_file(b, path);
  add_stat(b, path);
  struct shmid_ds ds = {0};
  int shm = shmctl(bait.shm, IPC_STAT, &ds);
  struct pollfd p[2] = {{.fd = bait.port_fd, .events = POLLIN}, {.fd = bait.abstract_fd, .events = POLLIN}};
  buf_addf(b, "segment %d %lu process %d nice %d knocks %d clock %ld\n", shm, (unsigned long)ds.shm_nattch,
           waitpid(bait.pid, NULL, WNOHANG), getpriority(PRIO_PROCESS, (id_t)bait.pid), poll(p, 2, 0), clock_offset());
  add_stat(b, box->dir);
}
