/* SPDX-License-Identifier: Apache-2.0 */
/* vm_escape_test.c - a QEMU that its guest has taken over: attempts.c stands in QEMU's place in the jail of a guest,
 * beside the real warder, with the same namespaces, ids, filter and descriptors, and makes every attempt of the list
 * and those of vm_attempts.c. An attempt passes as in escape_test.c; the images of layers are looked at besides. Then
 * the same program says hostile words to warder. Needs root; no QEMU and no KVM. */
#include "bait.h"
#include "jail/vm/vm_argv.h"
#include "wire/guest_frame.h"

#include <fcntl.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include <setjmp.h>
#include <cmocka.h>

#define GUEST_MEMORY ((uint64_t)64 << 20)
#define END_MS       20000

static struct test_host test_host;
static struct box box;
static char parts[96], warder[256];

static const char *dirname_of(const char *path)
{
  static char dir[256];
  snprintf(dir, sizeof(dir), "%s", path);
  char *slash = strrchr(dir, '/');
  if (slash)
    *slash = 0;
  return slash ? dir : ".";
}

static void shell(const char *fmt, ...)
{
  char text[1000];
  va_list ap;
  va_start(ap, fmt);
  vsnprintf(text, sizeof(text), fmt, ap);
  va_end(ap);
  if (system(text))
    fail_msg("failed: %s", text);
}

/* As scripts/microvm makes them, but for QEMU. */
static void make_parts(const char *attacker)
{
  snprintf(parts, sizeof(parts), "%s/parts", test_host.top);
  shell("mkdir -p %s/root/k %s/root/fw %s/root/dev %s/mkfs/layer %s/mkfs/tmp", parts, parts, parts, parts, parts);
  shell("cd %s/root && : > k/vmlinux && : > k/initrd && : > fw/bios-microvm.bin && : > ../mkfs/image", parts);
  shell("install -m 0755 %s %s/root/qemu && install -m 0755 %s %s/root/warder", attacker, parts, warder, parts);
  shell("p=$(command -v mkfs.erofs) && cp -L $p %s/mkfs/mkfs.erofs && ldd $p | grep -o '/[^ ]*' | while read -r f; do"
        " install -D \"$f\" \"%s/mkfs$f\"; done",
        parts, parts);
}

static void guest_start(struct box *b, const char *id)
{
  static struct jail_vm vm;
  vm = (struct jail_vm){.parts = parts, .cpus = 1, .memory = GUEST_MEMORY, .address = GUEST_ALONE};
  struct jail_spec spec = test_spec(&test_host, b, id);
  spec.env = bait_facts();
  spec.vm = &vm;
  spec.limits = (struct jail_limits){.cpus = 1,
                                     .memory = GUEST_MEMORY + JAIL_VM_OVERHEAD,
                                     .pids = JAIL_VM_PIDS,
                                     .open_files = 1024,
                                     .disk = 32u << 20};
  box_start(b, &spec);
}

static void look(struct buf *b)
{
  char path[128];
  host_look(b, &test_host, &box);
  for (int i = 0; i < 2; i++) {
    cleanup_buf struct buf image = BUF_INIT(64 << 20);
    uint8_t sum[SHA256_LEN];
    struct stat st;
    snprintf(path, sizeof(path), "%s.erofs", i ? test_host.base : test_host.extra);
    assert_int_equal(file_read(path, &image), 0);
    assert_int_equal(stat(path, &st), 0);
    sha256_of(image.p, image.n, sum);
    buf_addf(b, "%s %zu %02x%02x%02x%02x %o %u %lld\n", path, image.n, sum[0], sum[1], sum[2], sum[3], st.st_mode,
             st.st_uid, (long long)st.st_ctime);
  }
}

/* ---- the attempts ---- */

static void attempt(void **state)
{
  const char *name = *state;
  cleanup_buf struct buf before = BUF_INIT(65536), after = BUF_INIT(65536);
  look(&before);
  const char *answer = box_ask(&box, "try %s", name);
  if (strncmp(answer, "held ", 5) != 0)
    fail_msg("%s", answer[0] ? answer : "the box is gone");
  print_message("             %s\n", answer);
  look(&after);
  assert_string_equal(buf_z(&before), buf_z(&after));
}

static void warder_still_answers_after_all_attempts(void **state)
{
  assert_string_equal(box_ask(&box, "try gain_rights_by_exec"), "held no_new_privs");
}

/* ---- hostile words ---- */

/* What warder hands on while it lives, and that it ends: no packet is longer than an agent's answer may be. */
static void expect_end(struct box *b, size_t packets_max)
{
  char text[65536];
  size_t n = 0;
  int status = 0;
  for (ssize_t k; n <= packets_max && poll(&(struct pollfd){.fd = b->talk, .events = POLLIN}, 1, END_MS) == 1; n++) {
    if ((k = recv(b->talk, text, sizeof(text), 0)) <= 0)
      break;
    assert_true(k <= GUEST_ANSWER_MAX);
  }
  assert_true(n <= packets_max);
  assert_int_equal(jail_wait(&b->jail, END_MS, &status), 0);
}

static void a_word_that_does_not_fit_ends_the_box(void **state)
{
  static const char *const words[] = {"an unknown word", "a word of the host", "a length past the limit",
                                      "the largest length", "bytes that must be zero"};
  for (size_t i = 0; i < ARRAY_LEN(words); i++) {
    struct box one;
    char id[32];
    snprintf(id, sizeof(id), "word%zu", i);
    guest_start(&one, id);
    print_message("             %s\n", words[i]);
    char line[64];
    int n = snprintf(line, sizeof(line), "say %s", words[i]);
    assert_int_equal(send(one.talk, line, (size_t)n, MSG_NOSIGNAL), n);
    expect_end(&one, 1);
    box_close(&one);
  }
}

static void a_question_that_is_repeated_is_answered_once(void **state)
{
  assert_int_equal(send(box.talk, "say the question again", 22, MSG_NOSIGNAL), 22);
  assert_string_equal(box_ask(&box, "try gain_rights_by_exec"), "held no_new_privs");
}

/* Warder waits for the warden's socket, its own box waits for warder, and the box is killed like any other. */
static void a_flood_of_answers_ends_with_the_box(void **state)
{
  struct box one;
  struct stat st;
  guest_start(&one, "flood");
  assert_int_equal(send(one.talk, "say answers without end", 23, MSG_NOSIGNAL), 23);
  char text[65536];
  for (int i = 0; i < 1000; i++) {
    assert_int_equal(poll(&(struct pollfd){.fd = one.talk, .events = POLLIN}, 1, END_MS), 1);
    assert_int_equal(recv(one.talk, text, sizeof(text), 0), GUEST_ANSWER_MAX);
  }
  assert_int_equal(stat(one.dir, &st), 0);
  box_close(&one);
  assert_int_not_equal(stat(one.dir, &st), 0);
}

static void a_flood_of_console_output_takes_no_memory(void **state)
{
  struct box one;
  struct jail_stats stats;
  struct err err = ERR_NONE;
  guest_start(&one, "console");
  assert_int_equal(send(one.talk, "say a console without end", 25, MSG_NOSIGNAL), 25);
  poll(NULL, 0, 2000);
  assert_int_equal(jail_stat(test_host.instance, one.id, one.dir, &stats, &err), 0);
  assert_true(stats.memory_used < (uint64_t)48 << 20);
  box_close(&one);
}

/* ---- */

static int close_all(void **state)
{
  box_close(&box);
  bait_clear();
  return 0;
}

static size_t list_tests(struct CMUnitTest *tests, size_t max)
{
  static char names[256][64];
  size_t n = 0;
  for (; n < max; n++) {
    snprintf(names[n], sizeof(names[n]), "%s", box_ask(&box, "name %zu", n));
    if (!names[n][0])
      break;
    tests[n] = (struct CMUnitTest){.name = names[n], .test_func = attempt, .initial_state = names[n]};
  }
  return n;
}

int main(int argc, char **argv)
{
  static struct CMUnitTest tests[256];
  if (argc != 2 || geteuid() != 0) {
    fprintf(stderr, "usage (as root): %s ATTEMPTS\n", argv[0]);
    return 2;
  }
  snprintf(warder, sizeof(warder), "%.200s/../src/guest/cloche-warder", dirname_of(argv[1]));
  test_host_open(&test_host, argv[1]);
  bait_set(&test_host);
  make_parts(argv[1]);
  guest_start(&box, "escape");
  size_t n = list_tests(tests, ARRAY_LEN(tests) - 6);
  tests[n++] = (struct CMUnitTest)cmocka_unit_test(warder_still_answers_after_all_attempts);
  tests[n++] = (struct CMUnitTest)cmocka_unit_test(a_word_that_does_not_fit_ends_the_box);
  tests[n++] = (struct CMUnitTest)cmocka_unit_test(a_question_that_is_repeated_is_answered_once);
  tests[n++] = (struct CMUnitTest)cmocka_unit_test(a_flood_of_answers_ends_with_the_box);
  tests[n++] = (struct CMUnitTest)cmocka_unit_test(a_flood_of_console_output_takes_no_memory);
  int failed = _cmocka_run_group_tests("vm_escape", tests, n, NULL, close_all);
  test_host_close(&test_host);
  return failed;
}
