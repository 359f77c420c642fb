/* SPDX-License-Identifier: Apache-2.0 */
/* jail_test.c - real boxes, looked at from the host and from inside. Needs root. */
#include "box.h"
#include "jail/boot_id.h"
#include "jail/cgroup.h"
#include "jail/jail_doctor.h"
#include "jail/fs/disk_pool.h"

#include <dirent.h>
#include <fcntl.h>
#include <linux/sched.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include <setjmp.h>
#include <cmocka.h>

static struct test_host test_host;

static bool has(const char *text, const char *part)
{
  return strstr(text, part) != NULL;
}

static bool begins(const char *text, const char *part)
{
  return strncmp(text, part, strlen(part)) == 0;
}

#define assert_has(text, part)                                                                                         \
  do {                                                                                                                 \
    const char *has_text = (text);                                                                                     \
    if (!has(has_text, (part)))                                                                                        \
      fail_msg("no \"%s\" in: %s", (part), has_text);                                                                  \
  } while (0)
#define assert_lacks(text, part)                                                                                       \
  do {                                                                                                                 \
    const char *lacks_text = (text);                                                                                   \
    if (has(lacks_text, (part)))                                                                                       \
      fail_msg("\"%s\" in: %s", (part), lacks_text);                                                                   \
  } while (0)

/* One box shared by the tests that only look. */
static struct box shared;

static void the_guest_is_pid_1_and_root_of_its_box(void **state)
{
  assert_string_equal(box_ask(&shared, "hello"), "ok pid 1 uid 0 gid 0 host testbox");
}

static void the_host_sees_the_boxs_root_as_an_unprivileged_id(void **state)
{
  char path[64];
  struct stat st;
  snprintf(path, sizeof(path), "/proc/%d", shared.jail.init.pid);
  assert_int_equal(stat(path, &st), 0);
  assert_true(st.st_uid >= 1000000000u);
}

static void every_namespace_differs_from_the_hosts(void **state)
{
  static const char *const kinds[] = {"user", "pid", "mnt", "net", "ipc", "uts", "cgroup"};
  for (size_t i = 0; i < ARRAY_LEN(kinds); i++) {
    char ours[64], theirs[64], path[64];
    snprintf(path, sizeof(path), "/proc/self/ns/%s", kinds[i]);
    ssize_t a = readlink(path, ours, sizeof(ours));
    snprintf(path, sizeof(path), "/proc/%d/ns/%s", shared.jail.init.pid, kinds[i]);
    ssize_t b = readlink(path, theirs, sizeof(theirs));
    assert_true(a > 0 && b > 0);
    assert_false(a == b && memcmp(ours, theirs, (size_t)a) == 0);
  }
}

static void no_host_path_shows_in_mounts(void **state)
{
  const char *mounts = box_ask(&shared, "read /proc/self/mountinfo");
  assert_has(mounts, " / / rw");
  assert_lacks(mounts, test_host.top);
  assert_lacks(mounts, "/var/tmp");
  assert_lacks(mounts, test_host.instance);
  for (const char *at = mounts; (at = strstr(at, " /sys/fs/cgroup")); at++)
    assert_true(at > mounts + 1 && at[-1] == '/' && at[-2] == ' '); /* a place in the box; its root is "/" */
}

/* A layer on top of all others that has something of its own where the program comes from. */
static void make_shadow(char layer[128], char runtime[128], bool link)
{
  char path[256], program[256];
  snprintf(layer, 128, "%s/shadow-%d", test_host.top, link);
  snprintf(runtime, 128, "%s/runtime-%d", test_host.top, link);
  assert_int_equal(mkdir(layer, 0755) | mkdir(runtime, 0755), 0);
  snprintf(path, sizeof(path), "%s/usr", layer);
  assert_int_equal(mkdir(path, 0755), 0);
  snprintf(path, sizeof(path), "%s/usr/lib", layer);
  assert_int_equal(link ? symlink("/srv", path) : mkdir(path, 0755), 0);
  snprintf(path, sizeof(path), "%s/usr/lib/cloche", layer);
  assert_int_equal(link ? 0 : mkdir(path, 0755), 0);
  snprintf(path, sizeof(path), "%s/usr/lib/cloche/guest", layer);
  int fd = link ? -1 : open(path, O_WRONLY | O_CREAT, 0755);
  assert_true(link || write(fd, "#!/nowhere\n", 11) == 11);
  if (fd >= 0)
    close(fd);
  snprintf(program, sizeof(program), "%s/cloche/guest", test_host.extra);
  snprintf(path, sizeof(path), "%s/guest", runtime);
  assert_int_equal(linkat(AT_FDCWD, program, AT_FDCWD, path, 0), 0);
}

static struct jail_spec shadowed(struct box *b, const char *id, const char *layer, const char *runtime)
{
  static const char *const argv[] = {JAIL_RUNTIME "/guest", NULL};
  static const char *lowers[4];
  struct jail_spec spec = test_spec(&test_host, b, id);
  lowers[0] = layer;
  lowers[1] = test_host.extra;
  lowers[2] = test_host.base;
  spec.lowers = lowers;
  spec.argv = argv;
  spec.runtime = runtime;
  return spec;
}

static void a_layer_does_not_stand_in_for_the_runtime(void **state)
{
  char layer[128], runtime[128];
  struct box b;
  make_shadow(layer, runtime, false);
  struct jail_spec spec = shadowed(&b, "shadowed", layer, runtime);
  box_start(&b, &spec);
  assert_true(begins(box_ask(&b, "hello"), "ok pid 1 uid 0"));
  assert_string_equal(box_ask(&b, "write " JAIL_RUNTIME "/guest x"), "errno EROFS");
  assert_string_equal(box_ask(&b, "unlink " JAIL_RUNTIME "/guest"), "errno EROFS");
  assert_string_equal(box_ask(&b, "rename " JAIL_RUNTIME " /usr/lib/other"), "errno EBUSY");
  const char *mounts = box_ask(&b, "read /proc/self/mountinfo");
  assert_has(mounts, " " JAIL_RUNTIME " ro");
  assert_lacks(mounts, test_host.top);
  assert_lacks(mounts, "/var/tmp");
  box_close(&b);
}

static void a_link_does_not_lead_the_runtime_elsewhere(void **state)
{
  char layer[128], runtime[128];
  struct box b;
  struct err err = ERR_NONE;
  make_shadow(layer, runtime, true);
  struct jail_spec spec = shadowed(&b, "linked", layer, runtime);
  assert_true(jail_spawn(&spec, &b.jail, &err) < 0);
  assert_has(err.msg, "a directory is needed on the way to " JAIL_RUNTIME);
}

static void root_holds_the_layers_and_nothing_of_the_host(void **state)
{
  const char *list = box_ask(&shared, "list /");
  assert_has(list, " cloche");
  assert_has(list, " etc");
  assert_lacks(list, " boot");
  assert_lacks(list, " work");
  assert_lacks(list, " root");
}

static void dev_has_the_six_devices_and_the_links(void **state)
{
  static const char *const names[] = {"null", "zero", "full", "random", "urandom", "tty",   "ptmx",
                                      "pts",  "shm",  "fd",   "stdin",  "stdout",  "stderr"};
  char list[4096];
  snprintf(list, sizeof(list), "%s ", box_ask(&shared, "list /dev"));
  for (size_t i = 0; i < ARRAY_LEN(names); i++) {
    char word[32];
    snprintf(word, sizeof(word), " %s ", names[i]);
    assert_has(list, word);
  }
  assert_string_equal(box_ask(&shared, "write /dev/null x"), "ok 1");
  assert_string_equal(box_ask(&shared, "write /dev/full x"), "errno ENOSPC");
  assert_true(begins(box_ask(&shared, "stat /dev/shm"), "ok 41777 0:0"));
}

static void only_four_descriptors_come_in(void **state)
{
  const char *fds = box_ask(&shared, "fds");
  assert_true(begins(fds, "ok 0=/dev/null 1=/dev/null 2=/dev/null 3=socket:["));
  assert_lacks(fds, " 4=");
}

static void covered_files_are_empty_and_proc_sys_is_read_only(void **state)
{
  assert_string_equal(box_ask(&shared, "read /proc/kallsyms"), "ok ");
  assert_string_equal(box_ask(&shared, "read /proc/keys"), "ok ");
  assert_string_equal(box_ask(&shared, "list /proc/pressure"), "ok");
  assert_string_equal(box_ask(&shared, "list /proc/fs"), "ok");
  assert_true(begins(box_ask(&shared, "write /proc/sys/kernel/hostname x"), "errno E"));
  assert_true(begins(box_ask(&shared, "write /proc/sys/net/ipv4/ip_forward 1"), "errno E"));
  assert_has(box_ask(&shared, "read /proc/mounts"), "proc /proc/sys proc ro,");
  assert_string_equal(box_ask(&shared, "mkdir /sys/kernel/x"), "errno EROFS");
}

static void capabilities_are_bounded(void **state)
{
  const char *status = box_ask(&shared, "read /proc/self/status");
  assert_has(status, "CapBnd:\t00000000b18ce5ff");
  assert_has(status, "CapEff:\t00000000b18ce5ff");
  assert_has(status, "CapInh:\t0000000000000000");
  assert_has(status, "CapAmb:\t0000000000000000");
  assert_has(status, "NoNewPrivs:\t0"); /* sudo must work */
  assert_has(status, "Seccomp:\t2");
}

/* The filter answers before the kernel looks at arguments, so the numbers alone are enough. */
static void each_denied_call_answers_as_it_should(void **state)
{
  static const struct {
    long call;
    const char *answer;
  } calls[] = {
      {SYS_init_module, "EPERM"},
      {SYS_finit_module, "EPERM"},
      {SYS_delete_module, "EPERM"},
      {SYS_kexec_load, "EPERM"},
      {SYS_kexec_file_load, "EPERM"},
      {SYS_reboot, "EPERM"},
      {SYS_syslog, "EPERM"},
      {SYS_acct, "EPERM"},
      {SYS_swapon, "EPERM"},
      {SYS_swapoff, "EPERM"},
      {SYS_lookup_dcookie, "EPERM"},
      {SYS_vhangup, "EPERM"},
      {SYS_quotactl, "EPERM"},
      {SYS_quotactl_fd, "EPERM"},
      {SYS_clock_settime, "EPERM"},
      {SYS_settimeofday, "EPERM"},
      {SYS_bpf, "EPERM"},
      {SYS_perf_event_open, "EPERM"},
      {SYS_userfaultfd, "EPERM"},
      {SYS_io_uring_setup, "ENOSYS"},
      {SYS_io_uring_enter, "ENOSYS"},
      {SYS_io_uring_register, "ENOSYS"},
      {447, "ENOSYS"},
      {SYS_add_key, "EPERM"},
      {SYS_request_key, "EPERM"},
      {SYS_keyctl, "EPERM"},
      {SYS_open_by_handle_at, "EPERM"},
      {SYS_clone3, "ENOSYS"},
      {SYS_mount, "EPERM"},
      {SYS_umount2, "EPERM"},
      {SYS_pivot_root, "EPERM"},
      {SYS_setns, "EPERM"},
      {SYS_fsopen, "EPERM"},
      {SYS_fsconfig, "EPERM"},
      {SYS_fsmount, "EPERM"},
      {SYS_fspick, "EPERM"},
      {SYS_move_mount, "EPERM"},
      {SYS_open_tree, "EPERM"},
      {SYS_mount_setattr, "EPERM"},
      {467, "ENOSYS"},
      {500, "ENOSYS"},
#ifdef __x86_64__
      {SYS_ioperm, "EPERM"},
      {SYS_iopl, "EPERM"},
      {SYS_modify_ldt, "ENOSYS"},
      {SYS_create_module, "ENOSYS"},
      {SYS_uselib, "ENOSYS"},
      {SYS_ustat, "ENOSYS"},
      {SYS_sysfs, "ENOSYS"},
      {SYS__sysctl, "ENOSYS"},
#endif
  };
  for (size_t i = 0; i < ARRAY_LEN(calls); i++) {
    char want[24];
    snprintf(want, sizeof(want), "errno %s", calls[i].answer);
    const char *got = box_ask(&shared, "call %ld", calls[i].call);
    if (strcmp(got, want) != 0)
      fail_msg("call %ld: %s, not %s", calls[i].call, got, want);
  }
  assert_string_equal(box_ask(&shared, "call %ld", (long)SYS_getpid), "ok 1");
}

static void the_hostname_and_lo_are_its_own(void **state)
{
  assert_string_equal(box_ask(&shared, "list /sys/class/net"), "ok lo");
  assert_has(box_ask(&shared, "read /sys/class/net/lo/flags"), "0x9");
}

static void every_box_has_a_boot_id_of_its_own(void **state)
{
  struct box b;
  char ids[3][64] = {"", "", ""};
  cleanup_buf struct buf host = BUF_INIT(64);
  assert_int_equal(file_read("/proc/sys/kernel/random/boot_id", &host), 0);
  snprintf(ids[0], sizeof(ids[0]), "ok %s", buf_z(&host));
  snprintf(ids[1], sizeof(ids[1]), "%s", box_ask(&shared, "read /proc/sys/kernel/random/boot_id"));
  box_open(&test_host, &b, "boot-id");
  snprintf(ids[2], sizeof(ids[2]), "%s", box_ask(&b, "read /proc/sys/kernel/random/boot_id"));
  for (size_t i = 0; i < 3; i++) {
    assert_true(uuid_valid(str_trim(str_skip(str_of(ids[i]), 3))));
    assert_string_not_equal(ids[i], ids[(i + 1) % 3]);
  }
  assert_string_equal(box_ask(&b, "read /proc/sys/kernel/random/boot_id"), ids[2]);
  assert_string_equal(box_ask(&b, "write /proc/sys/kernel/random/boot_id x"), "errno EACCES");
  box_close(&b);
}

/* Copies of this process that keep its descriptors for some milliseconds, as between the fork and the exec of a helper.
 */
static void *fork_on(void *arg)
{
  atomic_bool *over = arg;
  pid_t pids[16] = {0};
  for (unsigned i = 0; !atomic_load(over) || i % ARRAY_LEN(pids); i++) {
    pid_t *pid = &pids[i % ARRAY_LEN(pids)];
    if (*pid > 0)
      waitpid(*pid, NULL, 0);
    *pid = fork();
    if (!*pid) {
      nanosleep(&(struct timespec){.tv_nsec = 5000000}, NULL);
      _exit(0);
    }
  }
  for (size_t i = 0; i < ARRAY_LEN(pids); i++)
    if (pids[i] > 0)
      waitpid(pids[i], NULL, 0);
  return NULL;
}

static void a_boot_id_is_made_while_other_threads_fork(void **state)
{
  pthread_t thread;
  atomic_bool over = false;
  char dir[256];
  struct err err = ERR_NONE;
  snprintf(dir, sizeof(dir), "%s/forked-id", test_host.top);
  assert_int_equal(mkdir(dir, 0700), 0);
  assert_int_equal(pthread_create(&thread, NULL, fork_on, &over), 0);
  int r = 0;
  for (int i = 0; i < 2000 && r >= 0; i++) {
    r = boot_id_renew(dir, &err);
    if (r >= 0)
      close(r);
  }
  atomic_store(&over, true);
  pthread_join(thread, NULL);
  if (r < 0)
    fail_msg("%s", err.msg);
}

static void memory_and_groups_are_shown_as_the_boxs_own(void **state)
{
  const char *limit = box_ask(&shared, "read /sys/fs/cgroup/memory/memory.limit_in_bytes");
  if (strncmp(limit, "ok ", 3) != 0)
    limit = box_ask(&shared, "read /sys/fs/cgroup/memory.max");
  assert_has(limit, "67108864");
  assert_has(box_ask(&shared, "read /proc/meminfo"), "MemTotal:          65536 kB");
  assert_string_equal(box_ask(&shared, "write /proc/meminfo x"), "errno EACCES");
  assert_has(box_ask(&shared, "read /proc/uptime"), "ok ");
}

static void files_copy_up_and_carry_unshifted_ids_on_disk(void **state)
{
  char path[256];
  struct stat st;
  assert_string_equal(box_ask(&shared, "read /etc/note"), "ok from the template\n");
  assert_string_equal(box_ask(&shared, "write /etc/note FROM"), "ok 4");
  assert_string_equal(box_ask(&shared, "read /etc/note"), "ok FROM the template\n");
  assert_string_equal(box_ask(&shared, "write /srv/own x"), "ok 1");
  assert_string_equal(box_ask(&shared, "chown /srv/own 1000 1001"), "ok 0");
  assert_true(begins(box_ask(&shared, "stat /srv/own"), "ok 100644 1000:1001 1"));
  snprintf(path, sizeof(path), "%s/upper/srv/own", shared.dir);
  assert_int_equal(stat(path, &st), 0);
  assert_int_equal(st.st_uid, 1000);
  assert_int_equal(st.st_gid, 1001);
  snprintf(path, sizeof(path), "%s/etc/note", test_host.base);
  cleanup_buf struct buf b = BUF_INIT(4096);
  assert_int_equal(file_read(path, &b), 0);
  assert_string_equal(buf_z(&b), "from the template\n");
}

static void xattrs_whiteouts_and_directory_renames_work(void **state)
{
  assert_string_equal(box_ask(&shared, "write /home/f x"), "ok 1");
  assert_string_equal(box_ask(&shared, "xattr /home/f user.colour blue"), "ok 0");
  assert_string_equal(box_ask(&shared, "xattr /home/f trusted.overlay.opaque y"), "errno EPERM");
  assert_string_equal(box_ask(&shared, "unlink /etc/passwd"), "ok 0");
  assert_string_equal(box_ask(&shared, "read /etc/passwd"), "errno ENOENT");
  assert_string_equal(box_ask(&shared, "rename /var /variable"), "ok 0");
  assert_true(begins(box_ask(&shared, "stat /variable"), "ok 40755"));
}

static int first_byte(int fd, char *text, size_t size)
{
  struct pollfd p = {.fd = fd, .events = POLLIN};
  return poll(&p, 1, 5000) == 1 ? (int)read(fd, text, size) : -1;
}

static void jail_connect_reaches_a_service_on_localhost(void **state)
{
  struct err err = ERR_NONE;
  char text[64] = "";
  assert_true(begins(box_ask(&shared, "listen 8080"), "ok"));
  cleanup_fd int fd = jail_connect(&shared.jail, 8080, true, &err);
  assert_true(fd >= 0);
  assert_int_equal(first_byte(fd, text, sizeof(text)), 19);
  assert_int_equal(jail_connect(&shared.jail, 8081, true, &err), -ECONNREFUSED);
  assert_has(err.msg, "8081");
  assert_int_equal(jail_connect(&shared.jail, 0, true, &err), -EINVAL);
}

static void *knock_often(void *arg)
{
  for (int i = 0; i < 50; i++) {
    char text[64];
    cleanup_fd int fd = jail_connect(&shared.jail, 8082, true, NULL);
    if (fd < 0 || first_byte(fd, text, sizeof(text)) != 19)
      return "a connection into the box failed";
  }
  return NULL;
}

static void jail_connect_works_from_many_threads_and_leaves_them_in_their_namespace(void **state)
{
  pthread_t t[8];
  char before[64] = "", after[64] = "";
  assert_true(begins(box_ask(&shared, "listen 8082"), "ok"));
  assert_true(readlink("/proc/thread-self/ns/net", before, sizeof(before) - 1) > 0);
  for (size_t i = 0; i < ARRAY_LEN(t); i++)
    pthread_create(&t[i], NULL, knock_often, NULL);
  for (size_t i = 0; i < ARRAY_LEN(t); i++) {
    void *failed = NULL;
    pthread_join(t[i], &failed);
    assert_null(failed);
  }
  assert_null(knock_often(NULL));
  assert_true(readlink("/proc/thread-self/ns/net", after, sizeof(after) - 1) > 0);
  assert_string_equal(before, after);
}

static void statistics_are_reported(void **state)
{
  struct jail_stats st;
  struct err err = ERR_NONE;
  assert_int_equal(jail_stat(test_host.instance, shared.id, shared.dir, &st, &err), 0);
  assert_int_equal(st.memory_limit, 64 << 20);
  assert_true(st.memory_used > 0 && st.memory_used < st.memory_limit);
  assert_true(st.cpu_usec > 0);
  assert_true(st.pids >= 1 && st.pids < 64);
  assert_int_equal(jail_stat(test_host.instance, "nobody", shared.dir, &st, &err), -ENOENT);
}

static void the_memory_limit_kills_and_is_counted(void **state)
{
  struct box b;
  struct jail_stats st;
  box_open(&test_host, &b, "memory");
  assert_string_equal(box_ask(&b, "eat 16777216"), "ok exit 0");
  assert_string_equal(box_ask(&b, "eat 134217728"), "ok signal 9");
  assert_int_equal(jail_stat(test_host.instance, b.id, b.dir, &st, NULL), 0);
  assert_true(st.oom_kills >= 1);
  char victim[32];
  assert_int_equal(jail_oom_victim(test_host.instance, b.id, victim, sizeof(victim)), 0);
  assert_string_equal(victim, "glutton");
  assert_int_equal(jail_oom_victim(test_host.instance, "nobody", victim, sizeof(victim)), -ENOENT);
  assert_string_equal(box_ask(&b, "hello"), "ok pid 1 uid 0 gid 0 host testbox");
  box_close(&b);
}

static void the_task_limit_holds(void **state)
{
  struct box b;
  box_open(&test_host, &b, "many");
  assert_string_equal(box_ask(&b, "breed 1000"), "ok 63 EAGAIN");
  box_close(&b);
}

static void open_with_disk(struct box *b, const char *id)
{
  struct jail_spec spec = test_spec(&test_host, b, id);
  spec.limits = (struct jail_limits){.cpus = 1, .memory = 64u << 20, .pids = 64, .disk = 48u << 20, .inodes = 2000};
  box_start(b, &spec);
}

static size_t loops_of_test_host(void)
{
  size_t n = 0;
  DIR *d = opendir("/sys/block");
  assert_non_null(d);
  for (struct dirent *e; (e = readdir(d));) {
    char path[320];
    cleanup_buf struct buf b = BUF_INIT(8192);
    snprintf(path, sizeof(path), "/sys/block/%s/loop/backing_file", e->d_name);
    if (file_read(path, &b) == 0 && has(buf_z(&b), test_host.top))
      n++;
  }
  closedir(d);
  return n;
}

static bool within(uint64_t value, uint64_t want, unsigned percent)
{
  return value >= want - want * percent / 100 && value <= want + want * percent / 100;
}

static void the_disk_limit_answers_enospc(void **state)
{
  struct box b;
  struct jail_stats st;
  open_with_disk(&b, "disk");
  struct str answer = str_of(box_ask(&b, "fill /home/big 1073741824")), ok, bytes, code;
  uint64_t written;
  str_cut(answer, ' ', &ok, &bytes);
  assert_true(str_cut(bytes, ' ', &bytes, &code));
  assert_true(str_is(code, "ENOSPC"));
  assert_int_equal(str_u64(bytes, &written), 0);
  assert_true(within(written, 48u << 20, 10));
  assert_int_equal(jail_stat(test_host.instance, b.id, b.dir, &st, NULL), 0);
  assert_true(within(st.disk_limit, 48u << 20, 15));
  assert_true(within(st.disk_used, 48u << 20, 15));
  assert_string_equal(box_ask(&b, "unlink /home/big"), "ok 0");
  assert_string_equal(box_ask(&b, "write /home/small x"), "ok 1");
  box_close(&b);
}

static void the_inode_limit_answers_enospc(void **state)
{
  struct box b;
  open_with_disk(&b, "inodes");
  struct str ok, n, code;
  uint64_t made;
  str_cut(str_of(box_ask(&b, "files /home/many 100000")), ' ', &ok, &n);
  assert_true(str_cut(n, ' ', &n, &code));
  assert_true(str_is(code, "ENOSPC"));
  assert_int_equal(str_u64(n, &made), 0);
  assert_true(within(made, 2000, 10));
  box_close(&b);
}

static void what_a_limited_box_wrote_survives_its_death_until_removal(void **state)
{
  struct box b;
  struct err err = ERR_NONE;
  int status;
  open_with_disk(&b, "again");
  assert_string_equal(box_ask(&b, "write /home/kept word"), "ok 4");
  assert_int_equal(jail_kill(test_host.instance, b.id, &b.jail, &err), 0);
  assert_int_equal(jail_wait(&b.jail, 5000, &status), 0);
  jail_close(&b.jail);
  close(b.talk);
  assert_int_equal(jail_remove(test_host.instance, b.id, NULL, &err), 0);
  assert_int_equal(jail_sync(b.dir, &err), 0);
  open_with_disk(&b, "again");
  assert_string_equal(box_ask(&b, "read /home/kept"), "ok word");
  box_close(&b);
}

static void no_loop_device_stays_behind(void **state)
{
  struct box b;
  open_with_disk(&b, "looped");
  assert_true(loops_of_test_host() >= 1);
  box_close(&b);
  disk_pool_close();
  for (int i = 0; i < 3000 && loops_of_test_host() > 0; i++)
    usleep(10000);
  assert_int_equal(loops_of_test_host(), 0);
}

static void etc_names_the_box(void **state)
{
  assert_string_equal(box_ask(&shared, "read /etc/hostname"), "ok testbox\n");
  assert_has(box_ask(&shared, "read /etc/hosts"), "127.0.1.1\ttestbox\n");
  assert_true(begins(box_ask(&shared, "stat /etc/resolv.conf"), "ok 100644 0:0"));
}

static int64_t cpu_of(struct box *b)
{
  struct jail_stats st;
  assert_int_equal(jail_stat(test_host.instance, b->id, b->dir, &st, NULL), 0);
  return (int64_t)st.cpu_usec;
}

static void a_frozen_box_stands_still_and_can_be_killed(void **state)
{
  struct box b;
  struct err err = ERR_NONE;
  box_open(&test_host, &b, "frozen");
  assert_true(begins(box_ask(&b, "spin"), "ok"));
  assert_int_equal(jail_freeze(test_host.instance, b.id, true, &err), 0);
  int64_t before = cpu_of(&b);
  usleep(60000);
  assert_true(cpu_of(&b) - before < 5000);
  assert_int_equal(jail_freeze(test_host.instance, b.id, false, &err), 0);
  for (int i = 0; i < 3000 && cpu_of(&b) - before <= 5000; i++)
    usleep(10000);
  assert_true(cpu_of(&b) - before > 5000);
  assert_int_equal(jail_freeze(test_host.instance, b.id, true, &err), 0);
  box_close(&b);
}

static void a_fork_bomb_dies_at_the_kill(void **state)
{
  struct box b;
  int status;
  struct err err = ERR_NONE;
  box_open(&test_host, &b, "bomb");
  assert_true(begins(box_ask(&b, "bomb"), "ok"));
  usleep(200000);
  assert_int_equal(jail_kill(test_host.instance, b.id, &b.jail, &err), 0);
  assert_int_equal(jail_wait(&b.jail, 30000, &status), 0);
  assert_int_equal(status, 128 + SIGKILL);
  box_close(&b);
}

static void a_box_is_found_again_by_pid_and_start_time(void **state)
{
  struct jail again;
  struct err err = ERR_NONE;
  struct proc_id wrong = shared.jail.init;
  assert_int_equal(jail_adopt(test_host.instance, shared.id, shared.jail.init, &again, &err), 0);
  cleanup_fd int fd = jail_connect(&again, 8080, true, &err);
  assert_true(fd >= 0);
  jail_close(&again);
  wrong.start++;
  assert_int_equal(jail_adopt(test_host.instance, shared.id, wrong, &again, &err), -ESRCH);
  assert_string_equal(box_ask(&shared, "hello"), "ok pid 1 uid 0 gid 0 host testbox");
}

static void a_program_that_is_not_there_is_told_and_leaves_nothing(void **state)
{
  struct box b;
  struct jail j;
  struct err err = ERR_NONE;
  struct jail_spec spec = test_spec(&test_host, &b, "absent");
  spec.argv = (const char *const[]){"/cloche/nobody", NULL};
  assert_int_equal(jail_spawn(&spec, &j, &err), -ENOENT);
  assert_has(err.msg, "/cloche/nobody");
  assert_int_equal(access(b.dir, F_OK), -1);
  assert_int_equal(j.pidfd, -1);
}

static void a_layer_that_is_not_there_is_told(void **state)
{
  struct box b;
  struct jail j;
  struct err err = ERR_NONE;
  struct jail_spec spec = test_spec(&test_host, &b, "layerless");
  spec.lowers = (const char *const[]){"/var/tmp/cloche-no-such-layer", NULL};
  assert_int_equal(jail_spawn(&spec, &j, &err), -ENOENT);
  assert_has(err.msg, "cloche-no-such-layer");
  assert_int_equal(access(b.dir, F_OK), -1);
}

static void names_that_are_no_plain_words_are_refused(void **state)
{
  struct box b;
  struct jail j;
  struct err err = ERR_NONE;
  static const char *const bad[] = {"../x", "a/b", "tasks", "", "A", "a b", "."};
  struct jail_spec spec = test_spec(&test_host, &b, "named");
  for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
    spec.id = bad[i];
    assert_int_equal(jail_spawn(&spec, &j, &err), -EINVAL);
    assert_int_equal(jail_remove(test_host.instance, bad[i], NULL, &err), -EINVAL);
  }
  spec = test_spec(&test_host, &b, "based");
  spec.id_base = 0;
  assert_int_equal(jail_spawn(&spec, &j, &err), -EINVAL);
}

static void a_console_inside_the_box_takes_its_output(void **state)
{
  struct box b;
  struct jail_spec spec = test_spec(&test_host, &b, "console");
  spec.console = "/home/console";
  box_start(&b, &spec);
  assert_has(box_ask(&b, "fds"), "1=/home/console 2=/home/console");
  box_close(&b);
}

static bool is_shared(const char *id, void *arg)
{
  return strcmp(id, shared.id) == 0;
}

static void a_sweep_takes_what_nobody_knows(void **state)
{
  struct box b;
  struct err err = ERR_NONE;
  int status;
  box_open(&test_host, &b, "lost");
  assert_int_equal(jail_sweep(test_host.instance, is_shared, NULL, &err), 0);
  assert_int_equal(jail_wait(&b.jail, 5000, &status), 0);
  assert_int_equal(jail_stat(test_host.instance, b.id, b.dir, &(struct jail_stats){0}, &err), -ENOENT);
  assert_string_equal(box_ask(&shared, "hello"), "ok pid 1 uid 0 gid 0 host testbox");
  box_close(&b);
}

/* --- nothing is left ------------------------------------------------------------------------------------------ */

struct traces {
  size_t mounts, groups, fds;
};

static size_t count_lines(const char *path)
{
  cleanup_buf struct buf b = BUF_INIT(4 << 20);
  size_t n = 0;
  assert_int_equal(file_read(path, &b), 0);
  for (size_t i = 0; i < b.n; i++)
    n += b.p[i] == '\n';
  return n;
}

static void count_one(const char *id, void *arg)
{
  ++*(size_t *)arg;
}

static size_t count_fds(void)
{
  size_t n = 0;
  DIR *d = opendir("/proc/self/fd");
  assert_non_null(d);
  while (readdir(d))
    n++;
  closedir(d);
  return n;
}

static struct traces look_around(void)
{
  struct traces t = {.mounts = count_lines("/proc/self/mountinfo"), .fds = count_fds()};
  assert_int_equal(cgroup_host()->each(test_host.instance, count_one, &t.groups), 0);
  return t;
}

static void cycles_leave_mounts_groups_and_descriptors_as_they_were(void **state)
{
  struct traces before = look_around();
  for (int i = 0; i < 500; i++) {
    struct box b;
    char id[16];
    snprintf(id, sizeof(id), "cycle-%d", i);
    if (i % 5)
      box_open(&test_host, &b, id);
    else
      open_with_disk(&b, id);
    box_close(&b);
    assert_int_equal(access(b.dir, F_OK), -1);
  }
  disk_pool_close();
  struct traces after = look_around();
  assert_int_equal(after.mounts, before.mounts);
  assert_int_equal(after.groups, before.groups);
  assert_int_equal(after.fds, before.fds);
}

static void *spawn_some(void *arg)
{
  for (int i = 0; i < 10; i++) {
    struct box b;
    char id[32];
    snprintf(id, sizeof(id), "t%ld-%d", (long)(intptr_t)arg, i);
    box_open(&test_host, &b, id);
    if (strcmp(box_ask(&b, "hello"), "ok pid 1 uid 0 gid 0 host testbox") != 0)
      return "a box did not answer";
    box_close(&b);
  }
  return NULL;
}

static void boxes_start_from_many_threads(void **state)
{
  pthread_t t[4];
  for (size_t i = 0; i < ARRAY_LEN(t); i++)
    pthread_create(&t[i], NULL, spawn_some, (void *)(intptr_t)i);
  for (size_t i = 0; i < ARRAY_LEN(t); i++) {
    void *failed = NULL;
    pthread_join(t[i], &failed);
    assert_null(failed);
  }
}

static void the_doctor_finds_what_boxes_need(void **state)
{
  struct jail_check checks[JAIL_CHECKS_MAX];
  struct traces before = look_around();
  size_t n = jail_doctor(&(struct jail_place){.data = test_host.top}, checks);
  assert_true(n >= 10);
  for (size_t i = 0; i < n; i++) {
    print_message("             %s: %s\n", checks[i].name, checks[i].detail);
    assert_true(checks[i].detail[0]);
    assert_int_not_equal(checks[i].health, JAIL_BROKEN); /* a box has just been made */
  }
  n = jail_doctor(&(struct jail_place){.data = "/proc/nowhere"}, checks);
  for (size_t i = 0; i < n; i++)
    if (strcmp(checks[i].name, "overlay") == 0)
      assert_int_equal(checks[i].health, JAIL_BROKEN);
  struct traces after = look_around();
  assert_int_equal(after.mounts, before.mounts);
  assert_int_equal(after.fds, before.fds);
}

/* Where the unified hierarchy is mounted beside v1, its core still works: groups, kill, freezing, processor time. In a
 * mount namespace of its own it is put where v2 hosts have it. */
static int try_unified(void)
{
  struct err err = ERR_NONE;
  cleanup_join struct cgroup_join join = CGROUP_JOIN_NONE;
  char top[96];
  if (unshare(CLONE_NEWNS) || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) ||
      mount("/sys/fs/cgroup/unified", "/sys/fs/cgroup", NULL, MS_BIND, NULL))
    return 1;
  snprintf(top, sizeof(top), "/sys/fs/cgroup/cloche-%s", test_host.instance);
  if (mkdir(top, 0755) || cgroup_v2.make(test_host.instance, "unified", &(struct jail_limits){0}, &join, &err) ||
      join.into < 0)
    return 2;
  struct clone_args args = {
      .flags = CLONE_INTO_CGROUP | CLONE_PIDFD, .exit_signal = SIGCHLD, .cgroup = (uint64_t)join.into};
  int pidfd = -1, status = 0;
  args.pidfd = (uint64_t)(uintptr_t)&pidfd;
  pid_t pid = (pid_t)syscall(SYS_clone3, &args, sizeof(args));
  if (pid == 0)
    for (;;)
      pause();
  if (pid < 0 || cgroup_v2.any(test_host.instance, "unified") != pid ||
      cgroup_v2.remove(test_host.instance, "unified") != -EBUSY)
    return 3;
  if (cgroup_v2.freeze(test_host.instance, "unified", true, &err) ||
      cgroup_v2.freeze(test_host.instance, "unified", false, &err))
    return 4;
  if (cgroup_v2.kill(test_host.instance, "unified") || waitpid(pid, &status, 0) != pid || WTERMSIG(status) != SIGKILL)
    return 5;
  int r = -EBUSY;
  for (int i = 0; i < 100 && (r = cgroup_v2.remove(test_host.instance, "unified")) == -EBUSY; i++)
    usleep(1000);
  cgroup_v2.close(test_host.instance);
  return r || access(top, F_OK) == 0 ? 6 : 0;
}

static void the_unified_hierarchy_makes_kills_and_freezes(void **state)
{
  int status = 0;
  if (access("/sys/fs/cgroup/unified/cgroup.procs", F_OK))
    skip();
  pid_t pid = fork();
  if (pid == 0)
    _exit(try_unified());
  assert_int_equal(waitpid(pid, &status, 0), pid);
  assert_int_equal(status, 0);
}

static int open_shared(void **state)
{
  box_open(&test_host, &shared, "shared");
  return 0;
}

static int close_shared(void **state)
{
  box_close(&shared);
  return 0;
}

int main(int argc, char **argv)
{
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(the_guest_is_pid_1_and_root_of_its_box),
      cmocka_unit_test(the_host_sees_the_boxs_root_as_an_unprivileged_id),
      cmocka_unit_test(every_namespace_differs_from_the_hosts),
      cmocka_unit_test(no_host_path_shows_in_mounts),
      cmocka_unit_test(a_layer_does_not_stand_in_for_the_runtime),
      cmocka_unit_test(a_link_does_not_lead_the_runtime_elsewhere),
      cmocka_unit_test(root_holds_the_layers_and_nothing_of_the_host),
      cmocka_unit_test(dev_has_the_six_devices_and_the_links),
      cmocka_unit_test(only_four_descriptors_come_in),
      cmocka_unit_test(covered_files_are_empty_and_proc_sys_is_read_only),
      cmocka_unit_test(capabilities_are_bounded),
      cmocka_unit_test(each_denied_call_answers_as_it_should),
      cmocka_unit_test(the_hostname_and_lo_are_its_own),
      cmocka_unit_test(every_box_has_a_boot_id_of_its_own),
      cmocka_unit_test(a_boot_id_is_made_while_other_threads_fork),
      cmocka_unit_test(memory_and_groups_are_shown_as_the_boxs_own),
      cmocka_unit_test(files_copy_up_and_carry_unshifted_ids_on_disk),
      cmocka_unit_test(xattrs_whiteouts_and_directory_renames_work),
      cmocka_unit_test(jail_connect_reaches_a_service_on_localhost),
      cmocka_unit_test(jail_connect_works_from_many_threads_and_leaves_them_in_their_namespace),
      cmocka_unit_test(statistics_are_reported),
      cmocka_unit_test(the_memory_limit_kills_and_is_counted),
      cmocka_unit_test(the_task_limit_holds),
      cmocka_unit_test(the_disk_limit_answers_enospc),
      cmocka_unit_test(the_inode_limit_answers_enospc),
      cmocka_unit_test(what_a_limited_box_wrote_survives_its_death_until_removal),
      cmocka_unit_test(no_loop_device_stays_behind),
      cmocka_unit_test(etc_names_the_box),
      cmocka_unit_test(a_frozen_box_stands_still_and_can_be_killed),
      cmocka_unit_test(a_fork_bomb_dies_at_the_kill),
      cmocka_unit_test(a_box_is_found_again_by_pid_and_start_time),
      cmocka_unit_test(a_program_that_is_not_there_is_told_and_leaves_nothing),
      cmocka_unit_test(a_layer_that_is_not_there_is_told),
      cmocka_unit_test(names_that_are_no_plain_words_are_refused),
      cmocka_unit_test(a_console_inside_the_box_takes_its_output),
      cmocka_unit_test(a_sweep_takes_what_nobody_knows),
      cmocka_unit_test(cycles_leave_mounts_groups_and_descriptors_as_they_were),
      cmocka_unit_test(boxes_start_from_many_threads),
      cmocka_unit_test(the_unified_hierarchy_makes_kills_and_freezes),
      cmocka_unit_test(the_doctor_finds_what_boxes_need),
  };
  if (argc != 2 || geteuid() != 0) {
    fprintf(stderr, "usage (as root): %s GUEST\n", argv[0]);
    return 2;
  }
  test_host_open(&test_host, argv[1]);
  int failed = cmocka_run_group_tests(tests, open_shared, close_shared);
  test_host_close(&test_host);
  return failed;
}
