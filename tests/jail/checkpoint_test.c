/* SPDX-License-Identifier: Apache-2.0 */
/* checkpoint_test.c - boxes that sleep on disk and wake up as if nothing had been. Needs root, and a criu. */
#include "jail/boot_id.h"
#include "jail/checkpoint/ext_conns.h"
#include "jail/net/jail_net.h"
#include "jail/net/rtnl.h"
#include "checkpoint_box.h"

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/netlink.h>
#include <linux/nsfs.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>

#include <setjmp.h>
#include <cmocka.h>

/* --- what is held --------------------------------------------------------------------------------------------- */

static void a_restored_box_continues_where_it_was(void **state)
{
  struct box b;
  struct jail_spec spec;
  char sum[64];
  open_checkpoint_guest(&b, &spec, "goes-on");
  assert_string_equal(ask(&b, "count"), "ok 1");
  assert_string_equal(ask(&b, "eat 16"), "ok 16777216");
  snprintf(sum, sizeof(sum), "%s", ask(&b, "sum"));
  assert_string_equal(ask(&b, "write /srv/note before"), "ok 6");
  sleep_and_wake(&b, &spec);
  assert_string_equal(ask(&b, "count"), "ok 2");
  assert_string_equal(ask(&b, "sum"), sum);
  assert_string_equal(ask(&b, "read /srv/note"), "ok before");
  assert_string_equal(ask(&b, "hello"), "ok pid 1 uid 0 host testbox");
  close_box(&b);
}

static void connections_inside_go_on(void **state)
{
  struct box b;
  struct jail_spec spec;
  open_checkpoint_guest(&b, &spec, "talks");
  assert_non_null(strstr(ask(&b, "tcp 127.0.0.1"), "ok"));
  assert_string_equal(ask(&b, "unix"), "ok 5");
  sleep_and_wake(&b, &spec);
  assert_string_equal(ask(&b, "tcp-talk over-tcp"), "ok over-tcp");
  assert_string_equal(ask(&b, "unix-talk new"), "ok kept new");
  sleep_and_wake(&b, &spec); /* and once more: what is restored can be dumped */
  assert_string_equal(ask(&b, "tcp-talk again"), "ok again");
  close_box(&b);
}

/* A box that comes back has another address: what was connected from the old one is ended, and nothing is in its way.
 */
static void connections_of_a_former_address_are_ended(void **state)
{
  struct box b;
  struct jail_spec spec;
  struct err err = ERR_NONE;
  open_checkpoint_guest(&b, &spec, "moves");
  int sock = jail_net_talk(b.jail.netns, NETLINK_ROUTE, &err);
  assert_true(sock >= 0);
  assert_int_equal(rtnl_address(sock, rtnl_index(sock, "lo"), 0x0a090909, 32), 0);
  close(sock);
  assert_non_null(strstr(ask(&b, "tcp 10.9.9.9"), "ok"));
  assert_string_equal(ask(&b, "tcp-talk here"), "ok here");
  sleep_and_wake(&b, &spec);
  assert_non_null(strstr(ask(&b, "tcp-talk gone"), "errno ECONN")); /* aborted, or reset by the other end that was */
  sleep_and_wake(&b, &spec);
  assert_string_equal(ask(&b, "count"), "ok 1");
  close_box(&b);
}

static void terminals_go_on_after_a_restore(void **state)
{
  struct box b;
  struct jail_spec spec;
  open_checkpoint_guest(&b, &spec, "types");
  assert_non_null(strstr(ask(&b, "pty"), "ok"));
  assert_non_null(strstr(ask(&b, "pty-talk"), "line 1"));
  sleep_and_wake(&b, &spec);
  assert_non_null(strstr(ask(&b, "pty-talk"), "line 2"));
  close_box(&b);
}

static void watches_deleted_files_and_timers_go_on(void **state)
{
  struct box b;
  struct jail_spec spec;
  open_checkpoint_guest(&b, &spec, "watches");
  assert_non_null(strstr(ask(&b, "watch /srv"), "ok"));
  assert_string_equal(ask(&b, "ghost no-name-any-more"), "ok 0");
  assert_string_equal(ask(&b, "events"), "ok 0");
  sleep_and_wake(&b, &spec);
  assert_string_equal(ask(&b, "write /srv/late x"), "ok 1");
  assert_string_equal(ask(&b, "watch-hear"), "ok late");
  assert_string_equal(ask(&b, "ghost-read"), "ok no-name-any-more");
  assert_string_equal(ask(&b, "events-hear"), "ok 1 event 7 timer 1");
  close_box(&b);
}

static long number(const char *answer)
{
  assert_true(strncmp(answer, "ok ", 3) == 0);
  return strtol(answer + 3, NULL, 10);
}

static void other_processes_go_on_and_stand_still_meanwhile(void **state)
{
  struct box b;
  struct jail_spec spec;
  open_checkpoint_guest(&b, &spec, "works");
  number(ask(&b, "worker"));
  for (int i = 0; i < 3000 && number(ask(&b, "worker-read")) == 0; i++)
    rest_ms(10);
  int64_t ran = -clock_mono_us();
  long before = number(ask(&b, "worker-read"));
  assert_true(before > 0);
  dump(&b, &spec);
  end_box(&b);
  ran += clock_mono_us();
  rest_ms(1000);
  ran -= clock_mono_us();
  restore(&b, &spec, checkpoint_of(&b));
  remove_checkpoint(&b);
  long after = number(ask(&b, "worker-read"));
  ran += clock_mono_us();
  assert_in_range(after, before, before + ran / 2000 + 10); /* it counts at most every two milliseconds */
  for (int i = 0; i < 3000 && number(ask(&b, "worker-read")) <= after; i++)
    rest_ms(10);
  assert_true(number(ask(&b, "worker-read")) > after);
  close_box(&b);
}

static void the_realtime_clock_is_right_and_the_monotonic_one_continues(void **state)
{
  struct box b;
  struct jail_spec spec;
  long long mono, wall, mono2, wall2;
  char *end;
  open_checkpoint_guest(&b, &spec, "tells-time");
  const char *told = ask(&b, "clock");
  mono = strtoll(told + 3, &end, 10);
  wall = strtoll(end, NULL, 10);
  dump(&b, &spec);
  end_box(&b);
  rest_ms(3000);
  restore(&b, &spec, checkpoint_of(&b));
  remove_checkpoint(&b);
  time_t asked = time(NULL);
  told = ask(&b, "clock");
  mono2 = strtoll(told + 3, &end, 10);
  wall2 = strtoll(end, NULL, 10);
  assert_in_range(wall2 - wall, 3, 120);
  assert_true(mono2 >= mono);
  assert_true(wall2 >= asked - 1 && wall2 <= time(NULL) + 1);
  close_box(&b);
}

/* --- isolation ------------------------------------------------------------------------------------------------ */

/* In any order: mounts are listed as they were made. The root's own line differs: an overlay is made with an identity
 * for handles and found again with it. */
static void assert_has_lines(const char *text, const char *wanted)
{
  struct str rest = str_of(wanted), line;
  while (rest.n > 0) {
    char one[1024];
    str_cut(rest, '\n', &line, &rest);
    assert_int_equal(str_copyz(str_starts(line, STR("ok ")) ? str_skip(line, 3) : line, one, sizeof(one)), 0);
    if (!strstr(one, "overlay / overlay rw,nodev,relatime,lowerdir+=") && !strstr(text, one))
      fail_msg("not on both sides: %s", one);
  }
}

static void a_restored_box_has_the_same_isolation(void **state)
{
  struct box b;
  struct jail_spec spec;
  static const char *const files[] = {"/proc/self/uid_map",
                                      "/proc/1/mounts",
                                      "/proc/self/cgroup",
                                      "/proc/self/limits",
                                      "/proc/sys/user/max_inotify_instances",
                                      "/proc/sys/user/max_inotify_watches"};
  static char before[ARRAY_LEN(files)][32768], after[32768];
  open_checkpoint_guest(&b, &spec, "same-jail");
  for (size_t i = 0; i < ARRAY_LEN(files); i++)
    snprintf(before[i], sizeof(before[i]), "%s", ask(&b, "read %s", files[i]));
  sleep_and_wake(&b, &spec);
  for (size_t i = 0; i < ARRAY_LEN(files); i++) {
    snprintf(after, sizeof(after), "%s", ask(&b, "read %s", files[i]));
    assert_has_lines(after, before[i]);
    assert_has_lines(before[i], after);
  }
  assert_string_equal(ask(&b, "read /proc/sys/user/max_inotify_watches"), "ok 16384\n");
  assert_non_null(strstr(ask(&b, "read /proc/net/dev"), "lo:"));
  assert_string_equal(ask(&b, "write /proc/sys/kernel/hostname x"), "errno EROFS");
  assert_non_null(strstr(ask(&b, "read /proc/self/status"), "Seccomp:\t2"));
  close_box(&b);
}

static uint32_t owner(pid_t pid)
{
  char path[64];
  uid_t uid = 0;
  snprintf(path, sizeof(path), "/proc/%d/ns/user", pid);
  int fd = open(path, O_RDONLY | O_CLOEXEC);
  assert_int_equal(ioctl(fd, NS_GET_OWNER_UID, &uid), 0);
  close(fd);
  return uid;
}

/* The frozen upper becomes a layer; the fork writes into one of its own. */
static void a_fork_has_another_name_other_ids_and_files_of_its_own(void **state)
{
  struct box b, f;
  struct jail_spec spec, fork;
  char frozen[PATH_MAX], command[PATH_MAX * 2];
  open_checkpoint_guest(&b, &spec, "source");
  assert_string_equal(ask(&b, "count"), "ok 1");
  assert_string_equal(ask(&b, "write /srv/note shared"), "ok 6");
  dump(&b, &spec);
  snprintf(frozen, sizeof(frozen), "%s/frozen", test_host.top);
  snprintf(command, sizeof(command), "cp -a %s/upper %s", b.dir, frozen);
  assert_int_equal(system(command), 0);
  assert_int_equal(jail_freeze(test_host.instance, b.id, false, NULL), 0);
  fork = test_spec(&test_host, &f, "forked");
  const char *lowers[] = {frozen, test_host.extra, test_host.base, NULL};
  fork.lowers = lowers;
  fork.hostname = "another";
  restore(&f, &fork, checkpoint_of(&b));
  assert_string_equal(ask(&f, "hello"), "ok pid 1 uid 0 host another");
  assert_string_equal(ask(&f, "count"), "ok 2");
  assert_string_equal(ask(&b, "count"), "ok 2");
  assert_string_equal(ask(&f, "read /srv/note"), "ok shared");
  assert_string_equal(ask(&f, "write /srv/note other"), "ok 5");
  assert_string_equal(ask(&b, "read /srv/note"), "ok shared");
  char map[64];
  snprintf(map, sizeof(map), "%10d %10u %10u", 0, fork.id_base, JAIL_IDS);
  char path[64], text[128] = "";
  snprintf(path, sizeof(path), "/proc/%d/uid_map", f.jail.init.pid);
  int fd = open(path, O_RDONLY);
  assert_true(read(fd, text, sizeof(text) - 1) > 0);
  close(fd);
  assert_non_null(strstr(text, map));
  assert_int_equal(owner(f.jail.init.pid), fork.id_base);
  assert_int_equal(owner(b.jail.init.pid), spec.id_base);
  close_box(&f);
  close_box(&b);
  remove_checkpoint(&b);
}

/* --- the boot id ---------------------------------------------------------------------------------------------- */

static const char *boot_id(struct box *b)
{
  static char ids[4][UUID_TEXT + 1];
  static unsigned next;
  char *id = ids[next++ % 4];
  struct str text = str_trim(str_skip(str_of(ask(b, "read " BOOT_ID_POINT)), strlen("ok ")));
  assert_true(uuid_valid(text));
  assert_int_equal(str_copyz(text, id, sizeof(ids[0])), 0);
  return id;
}

static void the_boot_id_stays_across_a_checkpoint_and_is_new_in_a_fork(void **state)
{
  struct box b, f;
  struct jail_spec spec, fork;
  struct err err = ERR_NONE;
  open_checkpoint_guest(&b, &spec, "boot-id");
  const char *born = boot_id(&b);
  sleep_and_wake(&b, &spec);
  assert_string_equal(boot_id(&b), born);
  assert_string_equal(ask(&b, "write " BOOT_ID_POINT " x"), "errno EROFS");
  sleep_and_wake(&b, &spec); /* the restored mount is known as well */
  assert_string_equal(boot_id(&b), born);
  dump(&b, &spec);
  assert_int_equal(jail_freeze(test_host.instance, b.id, false, NULL), 0);
  fork = test_spec(&test_host, &f, "boot-id-fork");
  restore(&f, &fork, checkpoint_of(&b));
  assert_string_not_equal(boot_id(&f), born);
  assert_string_equal(boot_id(&b), born);
  close_box(&f);
  remove_checkpoint(&b);
  end_box(&b);
  if (jail_spawn(&spec, &b.jail, &err)) /* a cold boot with the files it has */
    fail_msg("%s", err.msg);
  assert_string_not_equal(boot_id(&b), born);
  close_box(&b);
}

/* A box of an earlier version has no such mount, and the host's id is not written down as its own. */
static void a_checkpoint_without_a_boot_id_is_restored(void **state)
{
  struct box b;
  struct jail_spec spec;
  char path[PATH_MAX];
  int status;
  open_checkpoint_guest(&b, &spec, "no-boot-id");
  pid_t pid = fork();
  if (pid == 0)
    _exit(setns(b.jail.pidfd, CLONE_NEWNS) || umount2(BOOT_ID_POINT, MNT_DETACH) ? 1 : 0);
  assert_int_equal(waitpid(pid, &status, 0), pid);
  assert_int_equal(status, 0);
  assert_string_equal(ask(&b, "count"), "ok 1");
  dump(&b, &spec);
  snprintf(path, sizeof(path), "%s/" BOOT_ID_NAME, b.dir);
  assert_int_equal(access(path, F_OK), -1);
  end_box(&b);
  restore(&b, &spec, checkpoint_of(&b));
  remove_checkpoint(&b);
  assert_string_equal(ask(&b, "count"), "ok 2");
  close_box(&b);
}

static void a_limited_disk_keeps_its_files_and_its_limit(void **state)
{
  struct box b;
  struct jail_spec spec = test_spec(&test_host, &b, "disk");
  struct err err = ERR_NONE;
  spec.limits =
      (struct jail_limits){.cpus = 1, .memory = 256u << 20, .disk = 32u << 20, .pids = 64, .open_files = 1024};
  assert_int_equal(jail_spawn(&spec, &b.jail, &err), 0);
  assert_string_equal(ask(&b, "write /srv/note on-the-image"), "ok 12");
  sleep_and_wake(&b, &spec);
  assert_string_equal(ask(&b, "read /srv/note"), "ok on-the-image");
  struct jail_stats st;
  assert_int_equal(jail_stat(test_host.instance, b.id, b.dir, &st, &err), 0);
  assert_true(st.disk_limit > 0 && st.disk_limit < 64u << 20);
  assert_int_equal(st.memory_limit, 256u << 20);
  close_box(&b);
}

/* --- what must not be lost ------------------------------------------------------------------------------------ */

static void a_dump_leaves_the_box_frozen_until_it_is_told(void **state)
{
  struct box b;
  struct jail_spec spec;
  open_checkpoint_guest(&b, &spec, "frozen");
  number(ask(&b, "worker"));
  long before = number(ask(&b, "worker-read"));
  dump(&b, &spec);
  rest_ms(300);
  assert_int_equal(jail_freeze(test_host.instance, b.id, false, NULL), 0);
  assert_in_range(number(ask(&b, "worker-read")), before, before + 120);
  remove_checkpoint(&b);
  dump(&b, &spec); /* and a second one of the same box */
  assert_int_equal(jail_freeze(test_host.instance, b.id, false, NULL), 0);
  assert_string_equal(ask(&b, "count"), "ok 1");
  close_box(&b);
  remove_checkpoint(&b);
}

static uint64_t time_used(const struct box *b)
{
  struct jail_stats st;
  assert_int_equal(jail_stat(test_host.instance, b->id, b->dir, &st, NULL), 0);
  return st.cpu_usec;
}

static void a_held_box_runs_nothing_until_it_is_thawed(void **state)
{
  struct box b;
  struct jail_spec spec;
  struct err err = ERR_NONE;
  struct jail_criu held = criu;
  held.held = true;
  open_checkpoint_guest(&b, &spec, "held");
  number(ask(&b, "worker"));
  for (int i = 0; i < 2; i++) { /* the second one is ended as it stands */
    dump(&b, &spec);
    end_box(&b);
    if (jail_restore(&held, &spec, checkpoint_of(&b), &b.jail, &err))
      fail_msg("%s", err.msg);
    remove_checkpoint(&b);
    uint64_t used = time_used(&b);
    rest_ms(300);
    assert_int_equal(time_used(&b), used);
    if (i)
      break;
    assert_int_equal(jail_freeze(test_host.instance, b.id, false, NULL), 0);
    long before = number(ask(&b, "worker-read")), tries = 0;
    while (number(ask(&b, "worker-read")) == before && ++tries < 1000)
      rest_ms(10);
    assert_true(tries < 1000);
  }
  close_box(&b);
}

static void a_process_that_cannot_be_dumped_is_named_and_the_box_lives_on(void **state)
{
  struct box b;
  struct jail_spec spec;
  struct err err = ERR_NONE;
  open_checkpoint_guest(&b, &spec, "traced");
  long pid = number(ask(&b, "traced"));
  assert_int_equal(jail_dump(&criu, &spec, &b.jail, checkpoint_of(&b), &err), -ENOTSUP);
  char who[64];
  snprintf(who, sizeof(who), "process %ld (guest) is traced", pid);
  if (!strstr(err.msg, who))
    fail_msg("no \"%s\" in: %s", who, err.msg);
  assert_int_equal(access(checkpoint_of(&b), F_OK), -1);
  assert_string_equal(ask(&b, "count"), "ok 1");
  number(ask(&b, "end %ld", pid));
  sleep_and_wake(&b, &spec); /* without the reason it works */
  assert_string_equal(ask(&b, "count"), "ok 2");
  close_box(&b);
}

/* A box can rename a directory above a mount, and criu takes its options apart at these letters. */
static void mount_points_cannot_say_more_to_criu_than_their_names(void **state)
{
  static const char *const names[] = {"/usr/l]:b", "/usr/l[x", "/usr/a:b"};
  struct box b;
  struct err err = ERR_NONE;
  char runtime[PATH_MAX];
  snprintf(runtime, sizeof(runtime), "%s/a-runtime", test_host.top);
  assert_int_equal(mkdir(runtime, 0755), 0);
  struct jail_spec spec = test_spec(&test_host, &b, "separators");
  spec.limits = (struct jail_limits){.cpus = 1, .memory = 256u << 20, .pids = 64, .open_files = 1024};
  spec.runtime = runtime;
  if (jail_spawn(&spec, &b.jail, &err))
    fail_msg("%s", err.msg);
  for (size_t i = 0; i < ARRAY_LEN(names); i++) {
    assert_string_equal(ask(&b, "rename /usr/lib %s", names[i]), "ok 0");
    assert_int_equal(jail_dump(&criu, &spec, &b.jail, checkpoint_of(&b), &err), -ENOTSUP);
    assert_non_null(strstr(err.msg, "one of []:"));
    assert_string_equal(ask(&b, "rename %s /usr/lib", names[i]), "ok 0"); /* it lives on */
  }
  sleep_and_wake(&b, &spec);
  assert_string_equal(ask(&b, "count"), "ok 1");
  close_box(&b);
}

/* What a killed dump left is undone in one pass over a process's descriptors, and for so long only: their number is the
 * box's choice. */
static void held_connections_are_released_among_many_descriptors(void **state)
{
  struct rlimit was, most;
  int held = 0;
  socklen_t n = sizeof(held);
  assert_int_equal(getrlimit(RLIMIT_NOFILE, &was), 0);
  most = (struct rlimit){MIN(was.rlim_max, (rlim_t)40000), was.rlim_max};
  assert_int_equal(setrlimit(RLIMIT_NOFILE, &most), 0);
  int top = (int)most.rlim_cur - 500;
  int plain = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0), tcp = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  assert_int_equal(setsockopt(tcp, IPPROTO_TCP, TCP_REPAIR, &(int){1}, sizeof(int)), 0);
  int last = fcntl(tcp, F_DUPFD_CLOEXEC, top);
  close(tcp);
  for (int i = 0; i < top - 1000; i++)
    assert_true(fcntl(plain, F_DUPFD_CLOEXEC, 500) > 0);
  assert_true(last >= top && top > 2000);
  ext_conns_unrepair(getpid(), clock_mono_us()); /* no time left: nothing is done */
  assert_int_equal(getsockopt(last, IPPROTO_TCP, TCP_REPAIR, &held, &n), 0);
  assert_int_equal(held, 1);
  int64_t began = clock_mono_us();
  ext_conns_unrepair(getpid(), began + 60000000);
  assert_int_equal(getsockopt(last, IPPROTO_TCP, TCP_REPAIR, &held, &n), 0);
  assert_int_equal(held, 0);
  assert_true(clock_mono_us() - began < 5000000);
  close_range(500, ~0u, 0);
  close(plain);
  setrlimit(RLIMIT_NOFILE, &was);
}

static void a_box_that_is_being_killed_is_looked_at_no_more(void **state)
{
  struct box b;
  struct jail_spec spec;
  struct err err = ERR_NONE;
  const atomic_bool stop = true;
  struct jail_criu stopped = criu;
  stopped.stop = &stop;
  open_checkpoint_guest(&b, &spec, "no-more");
  assert_int_equal(jail_dump(&stopped, &spec, &b.jail, checkpoint_of(&b), &err), -ECANCELED);
  assert_int_equal(access(checkpoint_of(&b), F_OK), -1);
  assert_string_equal(ask(&b, "count"), "ok 1");
  close_box(&b);
}

static void an_outside_connection_is_named_and_the_box_lives_on(void **state)
{
  struct box b;
  struct err err = ERR_NONE;
  int pair[2];
  struct jail_spec spec = test_spec(&test_host, &b, "connected");
  assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
  spec.boot_fd = pair[1];
  assert_int_equal(jail_spawn(&spec, &b.jail, &err), 0);
  assert_string_equal(ask(&b, "count"), "ok 1");
  assert_int_equal(jail_dump(&criu, &spec, &b.jail, checkpoint_of(&b), &err), -EISCONN);
  assert_non_null(strstr(err.msg, "unix socket"));
  assert_string_equal(ask(&b, "count"), "ok 2");
  close(pair[0]);
  close(pair[1]);
  close_box(&b);
}

/* The filter of a box lets nobody in it create a user namespace, so the test enters the box as the host's root does, in
 * its control groups and namespaces but without the filter. */
static _Noreturn void enter_and_nest(const struct jail_enter_fds *fds, int ready)
{
  for (size_t i = 2; i < fds->n; i++)
    if (write(fds->fds[i], "0", 1) != 1)
      _exit(1);
  if (setns(fds->fds[0], CLONE_NEWUSER | CLONE_NEWPID | CLONE_NEWNS | CLONE_NEWNET | CLONE_NEWIPC | CLONE_NEWUTS))
    _exit(2);
  if (fork() != 0)
    _exit(0);
  if (setgid(0) || setuid(0) || unshare(CLONE_NEWUSER) || write(ready, "y", 1) != 1)
    _exit(3);
  for (;;)
    pause();
}

static void nested_namespaces_are_named_and_the_box_lives_on(void **state)
{
  struct box b;
  struct jail_spec spec;
  struct err err = ERR_NONE;
  struct jail_enter_fds fds;
  int status, ready[2];
  char byte = 0;
  open_checkpoint_guest(&b, &spec, "nested");
  assert_int_equal(jail_enter_fds(&spec, &b.jail, &fds, &err), 0);
  assert_int_equal(pipe2(ready, O_CLOEXEC), 0);
  pid_t pid = fork();
  if (pid == 0)
    enter_and_nest(&fds, ready[1]);
  close(ready[1]);
  assert_int_equal(waitpid(pid, &status, 0), pid);
  assert_int_equal(status, 0);
  assert_int_equal(read(ready[0], &byte, 1), 1);
  close(ready[0]);
  jail_enter_fds_close(&fds);
  assert_int_equal(jail_dump(&criu, &spec, &b.jail, checkpoint_of(&b), &err), -ENOTSUP);
  if (!strstr(err.msg, "(checkpoint_test) has namespaces of its own"))
    fail_msg("%s", err.msg);
  assert_string_equal(ask(&b, "count"), "ok 1");
  close_box(&b);
}

static void a_full_disk_is_told_and_the_box_lives_on(void **state)
{
  struct box b;
  struct jail_spec spec;
  struct err err = ERR_NONE;
  char small[PATH_MAX], checkpoint[PATH_MAX + 8];
  open_checkpoint_guest(&b, &spec, "full");
  number(ask(&b, "eat 32"));
  snprintf(small, sizeof(small), "%s/small", test_host.top);
  snprintf(checkpoint, sizeof(checkpoint), "%s/checkpoint", small);
  assert_int_equal(mkdir(small, 0700), 0);
  assert_int_equal(mount("tmpfs", small, "tmpfs", 0, "size=4m"), 0);
  int r = jail_dump(&criu, &spec, &b.jail, checkpoint, &err);
  bool gone = access(checkpoint, F_OK) != 0;
  assert_int_equal(umount(small), 0);
  rmdir(small);
  assert_int_equal(r, -ENOSPC);
  assert_non_null(strstr(err.msg, "full"));
  assert_true(gone);
  assert_string_equal(ask(&b, "count"), "ok 1");
  close_box(&b);
}

/* --- a criu that is killed ------------------------------------------------------------------------------------ */

struct shot {
  long after_us;
  int hit;
};

static pid_t find_criu(void)
{
  char path[64], text[4096] = "", name[32];
  DIR *d = opendir("/proc/self/task");
  for (struct dirent *e; d && (e = readdir(d));) {
    snprintf(path, sizeof(path), "/proc/self/task/%.20s/children", e->d_name);
    cleanup_fd int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? 0 : read(fd, text, sizeof(text) - 1);
    text[n > 0 ? n : 0] = 0;
    for (char *rest = text, *end; *rest; rest = end + (*end == ' ')) {
      pid_t pid = (pid_t)strtol(rest, &end, 10);
      if (end == rest)
        break;
      snprintf(path, sizeof(path), "/proc/%d/comm", pid);
      cleanup_fd int comm = open(path, O_RDONLY | O_CLOEXEC);
      n = comm < 0 ? 0 : read(comm, name, sizeof(name) - 1);
      name[n > 0 ? n : 0] = 0;
      if (!strcmp(name, "criu\n")) {
        closedir(d);
        return pid;
      }
    }
  }
  if (d)
    closedir(d);
  return 0;
}

static void *shoot(void *arg)
{
  struct shot *s = arg;
  pid_t pid = 0;
  for (int i = 0; i < 4000 && !(pid = find_criu()); i++)
    nanosleep(&(struct timespec){.tv_nsec = 250000}, NULL);
  nanosleep(&(struct timespec){.tv_nsec = s->after_us * 1000}, NULL);
  s->hit = pid && kill(pid, SIGKILL) == 0;
  return NULL;
}

#define HITS  10 /* the fault loop of `make soak` has hundreds */
#define SHOTS 80 /* a shot that comes after the dump is none; the next ones come earlier */

static bool ours(void)
{
  cleanup_buf struct buf b = BUF_INIT(64 << 20);
  return !file_read(criu.program, &b) && str_search(buf_str(&b), STR("CLOCHE_JOURNAL")) >= 0;
}

static long dump_and_go_on(struct box *b, struct jail_spec *spec)
{
  int64_t began = clock_mono_us();
  dump(b, spec);
  long took = (long)(clock_mono_us() - began);
  assert_int_equal(jail_freeze(test_host.instance, b->id, false, NULL), 0);
  remove_checkpoint(b);
  return took;
}

/* True where criu died of it. */
static bool shoot_a_dump(struct box *b, struct jail_spec *spec, long after_us)
{
  struct err err = ERR_NONE;
  pthread_t thread;
  struct shot s = {.after_us = after_us};
  assert_int_equal(pthread_create(&thread, NULL, shoot, &s), 0);
  int r = jail_dump(&criu, spec, &b->jail, checkpoint_of(b), &err);
  pthread_join(thread, NULL);
  if (!r) {
    assert_int_equal(jail_freeze(test_host.instance, b->id, false, NULL), 0);
    remove_checkpoint(b);
  }
  return r != 0;
}

static void worker_works(struct box *b)
{
  long before = number(ask(b, "worker-read"));
  for (int i = 0; i < 500 && number(ask(b, "worker-read")) <= before; i++)
    rest_ms(10);
  assert_true(number(ask(b, "worker-read")) > before);
}

/* At moments all over a dump: memory, threads, terminals and connections are as they were, and the next dump succeeds.
 */
static void a_killed_criu_leaves_the_box_as_it_was(void **state)
{
  struct box b;
  struct jail_spec spec;
  int hits = 0;
  if (!ours())
    skip(); /* the machine's own criu: a kill can take a process along */
  open_checkpoint_guest(&b, &spec, "shot");
  number(ask(&b, "eat 8"));
  char sum[64];
  snprintf(sum, sizeof(sum), "%s", ask(&b, "sum"));
  number(ask(&b, "worker"));
  assert_non_null(strstr(ask(&b, "tcp 127.0.0.1"), "ok"));
  dump_and_go_on(&b, &spec);
  long whole = dump_and_go_on(&b, &spec);
  for (long i = 1; i <= SHOTS && hits < HITS; i++) {
    if (shoot_a_dump(&b, &spec, (hits + 1) * whole / HITS))
      hits++;
    else
      whole -= whole / 8;
    char counted[32];
    snprintf(counted, sizeof(counted), "ok %ld", i);
    assert_string_equal(ask(&b, "count"), counted);
    worker_works(&b);
  }
  assert_int_equal(hits, HITS);
  assert_string_equal(ask(&b, "sum"), sum);
  assert_string_equal(ask(&b, "tcp-talk again"), "ok again");
  sleep_and_wake(&b, &spec);
  assert_string_equal(ask(&b, "sum"), sum);
  close_box(&b);
}

static void *close_late(void *arg)
{
  rest_ms(300);
  close(*(int *)arg);
  return NULL;
}

/* As with a kernel that takes its time to clean up behind a box. */
static void a_former_mount_is_waited_for(void **state)
{
  struct box b;
  struct jail_spec spec;
  pthread_t thread;
  char path[64];
  open_checkpoint_guest(&b, &spec, "former");
  assert_string_equal(ask(&b, "count"), "ok 1");
  dump(&b, &spec);
  snprintf(path, sizeof(path), "/proc/%d/ns/mnt", b.jail.init.pid);
  int mounts = open(path, O_RDONLY | O_CLOEXEC);
  assert_true(mounts >= 0);
  end_box(&b);
  assert_int_equal(pthread_create(&thread, NULL, close_late, &mounts), 0);
  restore(&b, &spec, checkpoint_of(&b));
  pthread_join(thread, NULL);
  remove_checkpoint(&b);
  assert_string_equal(ask(&b, "count"), "ok 2");
  close_box(&b);
}

/* --- damage --------------------------------------------------------------------------------------------------- */

static void write_at(const char *path, off_t at, const char *text)
{
  int fd = open(path, O_WRONLY);
  assert_true(fd >= 0);
  assert_int_equal(pwrite(fd, text, strlen(text), at), (ssize_t)strlen(text));
  close(fd);
}

static void a_damaged_checkpoint_is_refused_with_the_file_named(void **state)
{
  struct box b;
  struct jail_spec spec;
  struct jail j;
  struct err err = ERR_NONE;
  char pages[PATH_MAX + 32], manifest[PATH_MAX + 32], aside[PATH_MAX + 32];
  open_checkpoint_guest(&b, &spec, "damaged");
  dump(&b, &spec);
  end_box(&b);
  snprintf(pages, sizeof(pages), "%s/pages-1.img", checkpoint_of(&b));
  snprintf(manifest, sizeof(manifest), "%s/manifest", checkpoint_of(&b));
  snprintf(aside, sizeof(aside), "%s/.aside", checkpoint_of(&b));
  assert_int_equal(jail_checkpoint_check(checkpoint_of(&b), &err), 0);
  assert_true(jail_checkpoint_bytes(checkpoint_of(&b)) > 4096);
  char byte[2] = {0};
  int64_t began = clock_mono_us();
  int fd = open(pages, O_RDONLY);
  assert_int_equal(pread(fd, byte, 1, 100), 1);
  close(fd);
  char other[2] = {(char)(byte[0] == 'x' ? 'y' : 'x'), 0};
  write_at(pages, 100, other); /* one byte */
  assert_int_equal(jail_restore(&criu, &spec, checkpoint_of(&b), &j, &err), -EBADMSG);
  assert_non_null(strstr(err.msg, "pages-1.img"));
  fd = open(pages, O_WRONLY);
  assert_int_equal(pwrite(fd, byte, 1, 100), 1);
  struct stat st;
  assert_int_equal(fstat(fd, &st), 0);
  assert_int_equal(ftruncate(fd, st.st_size - 1), 0); /* a cut */
  close(fd);
  assert_int_equal(jail_restore(&criu, &spec, checkpoint_of(&b), &j, &err), -EBADMSG);
  assert_non_null(strstr(err.msg, "pages-1.img"));
  assert_int_equal(rename(pages, aside), 0); /* a loss */
  assert_int_equal(jail_restore(&criu, &spec, checkpoint_of(&b), &j, &err), -EBADMSG);
  assert_non_null(strstr(err.msg, "missing"));
  write_at(manifest, 5, "!");
  assert_int_equal(jail_restore(&criu, &spec, checkpoint_of(&b), &j, &err), -EBADMSG);
  assert_non_null(strstr(err.msg, "manifest"));
  assert_int_equal(unlink(manifest), 0);
  assert_int_equal(jail_restore(&criu, &spec, checkpoint_of(&b), &j, &err), -ENOENT);
  assert_true(clock_mono_us() - began < 20000000); /* criu waits for ever for memory that is not there */
  assert_int_equal(jail_remove(test_host.instance, b.id, b.dir, &err), 0);
  remove_checkpoint(&b);
}

static void flip_byte(const char *path, off_t at)
{
  char byte = 0;
  int fd = open(path, O_RDWR);
  assert_int_equal(pread(fd, &byte, 1, at), 1);
  byte = (char)~byte;
  assert_int_equal(pwrite(fd, &byte, 1, at), 1);
  close(fd);
}

static void a_compressed_checkpoint_is_smaller_and_is_restored(void **state)
{
  struct box b;
  struct jail_spec spec;
  struct jail j;
  struct err err = ERR_NONE;
  atomic_bool stop = true;
  char sum[64], pages[PATH_MAX + 32], packed[PATH_MAX + 32];
  open_checkpoint_guest(&b, &spec, "packed");
  assert_string_equal(ask(&b, "eat 16"), "ok 16777216");
  snprintf(sum, sizeof(sum), "%s", ask(&b, "sum"));
  dump(&b, &spec);
  end_box(&b);
  uint64_t before = jail_checkpoint_bytes(checkpoint_of(&b));
  assert_in_range(before, 8u << 20, 10u << 20); /* half of what it ate is zero */
  snprintf(pages, sizeof(pages), "%s/pages-1.img", checkpoint_of(&b));
  snprintf(packed, sizeof(packed), "%s.zst", pages);
  assert_int_equal(jail_checkpoint_compress(checkpoint_of(&b), 3, &stop, &err),
                   -ECANCELED); /* somebody wants the box */
  assert_int_equal(access(packed, F_OK), -1);
  assert_int_equal(jail_checkpoint_check(checkpoint_of(&b), &err), 0);
  stop = false;
  assert_int_equal(jail_checkpoint_compress(checkpoint_of(&b), 3, &stop, &err), 0);
  assert_int_equal(access(pages, F_OK), -1);
  assert_int_equal(jail_checkpoint_check(checkpoint_of(&b), &err), 0);
  assert_true(jail_checkpoint_bytes(checkpoint_of(&b)) < before);
  flip_byte(packed, 100);
  assert_int_equal(jail_checkpoint_check(checkpoint_of(&b), &err), -EBADMSG);
  assert_int_equal(jail_restore(&criu, &spec, checkpoint_of(&b), &j, &err), -EBADMSG);
  assert_non_null(strstr(err.msg, "pages-1.img.zst"));
  assert_int_equal(access(pages, F_OK), -1);
  flip_byte(packed, 100);
  assert_int_equal(jail_checkpoint_compress(checkpoint_of(&b), 3, &stop, &err), 0); /* nothing is left to do */
  restore(&b, &spec, checkpoint_of(&b));
  assert_string_equal(ask(&b, "sum"), sum);
  close_box(&b);
  remove_checkpoint(&b);
}

/* What only this run of the daemon may use is refused by every later one. */
static void a_transient_checkpoint_serves_at_once_and_never_again(void **state)
{
  struct box b;
  struct jail_spec spec;
  struct jail j;
  struct err err = ERR_NONE;
  struct jail_criu kept = criu;
  open_checkpoint_guest(&b, &spec, "transient");
  assert_string_equal(ask(&b, "count"), "ok 1");
  criu.transient = true;
  dump(&b, &spec);
  end_box(&b);
  restore(&b, &spec, checkpoint_of(&b));
  criu = kept;
  assert_string_equal(ask(&b, "count"), "ok 2");
  close_box(&b);
  assert_int_equal(jail_restore(&criu, &spec, checkpoint_of(&b), &j, &err), -EBADMSG);
  remove_checkpoint(&b);
}

/* --- traces --------------------------------------------------------------------------------------------------- */

static size_t count_entries(const char *path)
{
  size_t n = 0;
  DIR *d = opendir(path);
  while (d && readdir(d))
    n++;
  if (d)
    closedir(d);
  return n;
}

static size_t count_lines(const char *path)
{
  cleanup_buf struct buf b = BUF_INIT(4 << 20);
  size_t n = 0;
  if (!file_read(path, &b))
    for (size_t i = 0; i < b.n; i++)
      n += b.p[i] == '\n';
  return n;
}

static void cycles_leave_nothing_behind(void **state)
{
  struct box b;
  struct jail_spec spec;
  struct jail j;
  struct err err = ERR_NONE;
  open_checkpoint_guest(&b, &spec, "cycles");
  sleep_and_wake(&b, &spec);
  size_t fds = count_entries("/proc/self/fd"), mounts = count_lines("/proc/self/mountinfo");
  for (int i = 0; i < 3; i++)
    sleep_and_wake(&b, &spec);
  dump(&b, &spec);
  end_box(&b);
  struct jail_criu none = {.program = "/nowhere/criu"};
  assert_true(jail_restore(&none, &spec, checkpoint_of(&b), &j, &err) < 0);
  assert_non_null(strstr(err.msg, "/nowhere/criu"));
  restore(&b, &spec, checkpoint_of(&b));
  remove_checkpoint(&b);
  assert_int_equal(count_entries("/proc/self/fd"), fds);
  assert_int_equal(count_lines("/proc/self/mountinfo"), mounts);
  siginfo_t si = {0};
  close_box(&b);
  assert_int_equal(waitid(P_ALL, 0, &si, WEXITED | WNOHANG | __WALL), -1); /* no child is left */
}

static void this_host_dumps_and_restores(void **state)
{
  static const char *const argv[] = {"/cloche/guest", NULL};
  struct err why = ERR_NONE;
  if (jail_criu_prove(&criu, test_host.instance, test_host.top, test_host.extra, argv, &why))
    fail_msg("%s", why.msg);
  struct jail_criu none = {.program = "/nowhere/criu"};
  assert_true(jail_criu_prove(&none, test_host.instance, test_host.top, test_host.extra, argv, &why) < 0);
}

/* As an installed one in a container's root. The mount is of this program's own namespace. */
static void a_layer_that_can_not_map_ids_is_proved_by_a_copy(void **state)
{
  static const char *const argv[] = {"/cloche/guest", NULL};
  struct err why = ERR_NONE;
  char ram[PATH_MAX], command[3 * PATH_MAX];
  snprintf(ram, sizeof(ram), "%s/ram", test_host.top);
  assert_int_equal(mkdir(ram, 0755), 0);
  assert_int_equal(mount("none", ram, "ramfs", 0, "mode=755"), 0);
  snprintf(command, sizeof(command), "cp -a %s/. %s/", test_host.extra, ram);
  assert_int_equal(system(command), 0);
  size_t entries = count_entries(test_host.top);
  int r = jail_criu_prove(&criu, test_host.instance, test_host.top, ram, argv, &why);
  assert_int_equal(umount2(ram, MNT_DETACH), 0);
  if (r)
    fail_msg("%s", why.msg);
  assert_int_equal(count_entries(test_host.top), entries);
}

int main(int argc, char **argv)
{
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_restored_box_continues_where_it_was),
      cmocka_unit_test(connections_inside_go_on),
      cmocka_unit_test(connections_of_a_former_address_are_ended),
      cmocka_unit_test(terminals_go_on_after_a_restore),
      cmocka_unit_test(watches_deleted_files_and_timers_go_on),
      cmocka_unit_test(other_processes_go_on_and_stand_still_meanwhile),
      cmocka_unit_test(the_realtime_clock_is_right_and_the_monotonic_one_continues),
      cmocka_unit_test(a_restored_box_has_the_same_isolation),
      cmocka_unit_test(a_fork_has_another_name_other_ids_and_files_of_its_own),
      cmocka_unit_test(the_boot_id_stays_across_a_checkpoint_and_is_new_in_a_fork),
      cmocka_unit_test(a_checkpoint_without_a_boot_id_is_restored),
      cmocka_unit_test(a_limited_disk_keeps_its_files_and_its_limit),
      cmocka_unit_test(a_dump_leaves_the_box_frozen_until_it_is_told),
      cmocka_unit_test(a_held_box_runs_nothing_until_it_is_thawed),
      cmocka_unit_test(a_process_that_cannot_be_dumped_is_named_and_the_box_lives_on),
      cmocka_unit_test(mount_points_cannot_say_more_to_criu_than_their_names),
      cmocka_unit_test(held_connections_are_released_among_many_descriptors),
      cmocka_unit_test(a_box_that_is_being_killed_is_looked_at_no_more),
      cmocka_unit_test(an_outside_connection_is_named_and_the_box_lives_on),
      cmocka_unit_test(nested_namespaces_are_named_and_the_box_lives_on),
      cmocka_unit_test(a_full_disk_is_told_and_the_box_lives_on),
      cmocka_unit_test(a_killed_criu_leaves_the_box_as_it_was),
      cmocka_unit_test(a_former_mount_is_waited_for),
      cmocka_unit_test(a_damaged_checkpoint_is_refused_with_the_file_named),
      cmocka_unit_test(a_compressed_checkpoint_is_smaller_and_is_restored),
      cmocka_unit_test(a_transient_checkpoint_serves_at_once_and_never_again),
      cmocka_unit_test(cycles_leave_nothing_behind),
      cmocka_unit_test(this_host_dumps_and_restores),
      cmocka_unit_test(a_layer_that_can_not_map_ids_is_proved_by_a_copy),
  };
  return run_checkpoint_tests(argc, argv, tests, ARRAY_LEN(tests));
}
