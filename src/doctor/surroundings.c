/* SPDX-License-Identifier: Apache-2.0 */
/* surroundings.c - see surroundings.h. */
#include "doctor/surroundings.h"

#include <fcntl.h>
#include <linux/fs.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/ioctl.h>
#include <sys/timex.h>
#include <sys/wait.h>

#define tell      jail_check_tell
#define advise    jail_check_advise
#define RULES_MAX ((size_t)4 << 20)

/* ---- firewalls of others ---- */

/* What a program prints; -errno when it can't be run or fails. */
static int output_of(const char *const *argv, struct buf *out)
{
  static const char *const env[] = {"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", NULL};
  int fds[2], status = 0;
  pid_t pid;
  posix_spawn_file_actions_t fa;
  if (pipe2(fds, O_CLOEXEC))
    return -errno;
  posix_spawn_file_actions_init(&fa);
  posix_spawn_file_actions_adddup2(&fa, fds[1], 1);
  posix_spawn_file_actions_addopen(&fa, 2, "/dev/null", O_WRONLY, 0);
  int r = posix_spawnp(&pid, argv[0], &fa, NULL, (char *const *)(uintptr_t)argv, (char *const *)(uintptr_t)env);
  posix_spawn_file_actions_destroy(&fa);
  close(fds[1]);
  int read_all = r ? 0 : fd_read_all(fds[0], out);
  close(fds[0]);
  if (r)
    return -r;
  if (read_all)
    kill(pid, SIGKILL);
  while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
    ;
  return read_all ? read_all : status ? -EIO : 0;
}

bool forward_drops(struct str chains, char *where, size_t size, bool *docker)
{
  struct str line, table = STR_NONE, chain = STR_NONE;
  bool found = false;
  *docker = false;
  while (chains.n) {
    str_cut(chains, '\n', &line, &chains);
    line = str_trim(line);
    if (str_starts(line, STR("table ")))
      table = str_trim(str_sub(str_skip(line, 6), 0, line.n > 8 ? line.n - 8 : 0));
    if (str_starts(line, STR("chain ")))
      chain = str_trim(str_sub(str_skip(line, 6), 0, line.n > 8 ? line.n - 8 : 0));
    *docker |= str_starts(line, STR("chain DOCKER-USER"));
    bool own = str_search(table, STR("cloche_")) >= 0;
    if (found || own || str_search(line, STR("hook forward")) < 0 || str_search(line, STR("policy drop")) < 0)
      continue;
    snprintf(where, size, STR_FMT " " STR_FMT, STR_ARG(table), STR_ARG(chain));
    found = true;
  }
  return found;
}

static void check_firewall(struct jail_check *c, const struct surroundings_place *place)
{
  static const char *const argv[] = {"nft", "list", "chains", NULL};
  cleanup_buf struct buf b = BUF_INIT(RULES_MAX);
  char where[160], pool[48] = "10.128.0.0/9"; /* what the default is chosen from */
  bool docker;
  if (place->net_pool && place->net_pool[0])
    snprintf(pool, sizeof(pool), "%s/16", place->net_pool);
  if (!place->internet) {
    tell(c, JAIL_FINE, "not needed: outbound networking is off (internet = 0)");
  } else if (output_of(argv, &b)) {
    tell(c, JAIL_WORSE, "rules of others can't be read with nft");
    advise(c, "apt install nftables");
  } else if (!forward_drops(buf_str(&b), where, sizeof(where), &docker)) {
    tell(c, JAIL_FINE, "no rules of others drop what is forwarded");
  } else if (docker) {
    tell(c, JAIL_WORSE, "Docker drops what it does not forward itself (%s): boxes reach no network", where);
    advise(c,
           "iptables -I DOCKER-USER -s %s -j ACCEPT; iptables -I DOCKER-USER -d %s -j ACCEPT (after each start of "
           "Docker; our own rules stay in force)",
           pool, pool);
  } else {
    tell(c, JAIL_WORSE, "%s drops what is forwarded: boxes reach no network unless its rules let them", where);
    advise(c, "nft insert rule %s ip saddr %s accept; nft insert rule %s ip daddr %s accept", where, pool, where, pool);
  }
}

/* ---- the rest ---- */

static void check_modules(struct jail_check *c, const struct surroundings_place *place)
{
  cleanup_buf struct buf lsm = BUF_INIT(4096), enforce = BUF_INIT(64), label = BUF_INIT(4096);
  bool listed = !file_read("/sys/kernel/security/lsm", &lsm);
  bool selinux = !file_read("/sys/fs/selinux/enforce", &enforce) && str_starts(buf_str(&enforce), STR("1"));
  bool confined = !file_read("/proc/self/attr/apparmor/current", &label) &&
                  !str_starts(buf_str(&label), STR("unconfined")) && label.n;
  if (selinux) {
    tell(c, JAIL_WORSE, "SELinux enforces its policy: mounts and namespaces of boxes may be refused");
    advise(c,
           "run the unit unconfined (SELinuxContext=system_u:system_r:unconfined_service_t:s0) and label the data "
           "directory: semanage fcontext -a -t container_file_t '%s(/.*)?' && restorecon -R %s",
           place->data, place->data);
  } else if (confined) {
    tell(c, JAIL_WORSE, "an AppArmor profile confines this program: " STR_FMT, STR_ARG(str_trim(buf_str(&label))));
    advise(c, "AppArmorProfile=unconfined in the unit, or a profile that allows mount, pivot_root and userns");
  } else {
    tell(c, JAIL_FINE, "none is in the way (" STR_FMT ")", STR_ARG(listed ? buf_str(&lsm) : STR("none told")));
  }
}

static void check_reflinks(struct jail_check *c, const struct surroundings_place *place)
{
  cleanup_fd int from = open(place->data, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
  cleanup_fd int to = open(place->data, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
  char block[4096] = "x";
  if (from < 0 || to < 0 || write(from, block, sizeof(block)) != sizeof(block))
    tell(c, JAIL_FINE, "not tried: %s can't hold a file without a name", place->data);
  else if (ioctl(to, FICLONE, from))
    tell(c, JAIL_FINE, "none: forks, snapshots and backups copy blocks (btrfs, and xfs with reflink=1, share them)");
  else
    tell(c, JAIL_FINE, "forks, snapshots and backups share blocks");
}

static void check_clock(struct jail_check *c, const struct surroundings_place *place)
{
  struct timex t = {0};
  if (adjtimex(&t) == TIME_ERROR) {
    tell(c, JAIL_WORSE,
         "the clock is not kept in time with others; timeouts do not depend on it, certificates and "
         "signed links do");
    advise(c, "apt install systemd-timesyncd, or chrony");
  } else {
    tell(c, JAIL_FINE, "kept in time");
  }
}

static void check_instance(struct jail_check *c, const struct surroundings_place *place)
{
  char path[4096];
  snprintf(path, sizeof(path), "%s/lock", place->data);
  cleanup_fd int fd = open(path, O_RDONLY | O_CLOEXEC);
  if (fd >= 0 && flock(fd, LOCK_SH | LOCK_NB) && errno == EWOULDBLOCK)
    tell(c, JAIL_FINE, "a server works on %s; another one needs its own --data, --listen and --id-base", place->data);
  else
    tell(c, JAIL_FINE, "no server works on %s", place->data);
}

size_t surroundings_examine(const struct surroundings_place *place, struct jail_check *out)
{
  static const struct {
    const char *id, *name;
    void (*check)(struct jail_check *c, const struct surroundings_place *place);
  } checks[] = {
      {"firewall", "other firewalls", check_firewall}, {"security_modules", "security modules", check_modules},
      {"reflinks", "reflinks", check_reflinks},        {"clock", "clock", check_clock},
      {"instance", "other servers", check_instance},
  };
  _Static_assert(ARRAY_LEN(checks) <= SURROUNDINGS_MAX, "room for every check");
  for (size_t i = 0; i < ARRAY_LEN(checks); i++) {
    out[i] = (struct jail_check){.id = checks[i].id, .name = checks[i].name};
    checks[i].check(&out[i], place);
  }
  return ARRAY_LEN(checks);
}
