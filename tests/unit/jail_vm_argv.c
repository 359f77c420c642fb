/* SPDX-License-Identifier: Apache-2.0 */
/* jail_vm_argv.c - the command line of a guest: what it may write to, what it must not have, and that it fits. */
#include "unit.h"

#include "jail/jail_child.h"
#include "jail/vm/vm_argv.h"
#include "wire/guest_frame.h"

static size_t length(const char *const *list)
{
  size_t n = 0;
  while (list[n])
    n++;
  return n;
}

static unsigned count(const char *const *argv, const char *piece)
{
  unsigned n = 0;
  for (; *argv; argv++)
    n += strstr(*argv, piece) != NULL;
  return n;
}

static const char *after(const char *const *argv, const char *option)
{
  for (; *argv; argv++)
    if (!strcmp(*argv, option))
      return argv[1];
  return "";
}

static void only_the_scratch_disk_can_be_written(void **state)
{
  cleanup_arena struct arena a = ARENA_INIT(1 << 18);
  const char *const *argv = vm_argv(&a, &(struct vm_machine){.cpus = 2, .layers = 3, .memory_mb = 512});
  assert_int_equal(count(argv, "read-only=off"), 1);
  assert_int_equal(count(argv, "node-name=scratch,read-only=off"), 1);
  assert_int_equal(count(argv, "read-only=on"), 3);
  assert_int_equal(count(argv, "virtio-blk-device"), 4);
}

static void there_is_no_monitor_and_nothing_by_default(void **state)
{
  cleanup_arena struct arena a = ARENA_INIT(1 << 18);
  const char *const *argv = vm_argv(&a, &(struct vm_machine){.cpus = 1, .layers = 1, .memory_mb = 512});
  assert_int_equal(count(argv, "-mon"), 0);
  assert_int_equal(count(argv, "qmp"), 0);
  assert_int_equal(count(argv, "-nodefaults"), 1);
  assert_int_equal(count(argv, "-no-user-config"), 1);
  assert_string_equal(after(argv, "-display"), "none");
  assert_non_null(strstr(after(argv, "-sandbox"), "on,"));
  assert_non_null(strstr(after(argv, "-M"), "microvm"));
}

static void the_guest_meets_few_devices_and_qemu_denies_itself_the_rest(void **state)
{
  static const char *const none[] = {"pci", "usb", "vga", "-vnc", "-spice", "-audio", "slirp", "user,id", "vhost"};
  static const char *const denied[] = {"obsolete=deny", "elevateprivileges=deny", "spawn=deny", "resourcecontrol=deny"};
  cleanup_arena struct arena a = ARENA_INIT(1 << 18);
  const char *const *argv = vm_argv(&a, &(struct vm_machine){.cpus = 1, .layers = 2, .memory_mb = 512});
  for (size_t i = 0; i < ARRAY_LEN(none); i++)
    assert_int_equal(count(argv, none[i]), 0);
  for (size_t i = 0; i < ARRAY_LEN(denied); i++)
    assert_non_null(strstr(after(argv, "-sandbox"), denied[i]));
  assert_true(!strncmp(after(argv, "-M"), "microvm,", 8) || !strcmp(after(argv, "-M"), "microvm"));
}

static void emulation_is_never_chosen_for_kvm(void **state)
{
  cleanup_arena struct arena a = ARENA_INIT(1 << 18);
  struct vm_machine m = {.accel = VM_KVM, .cpus = 1, .layers = 1, .memory_mb = 512};
  const char *const *argv = vm_argv(&a, &m);
  assert_string_equal(after(argv, "-accel"), "kvm");
  assert_int_equal(count(argv, "tsc_early_khz"), 0);
  m.accel = VM_EMULATION;
  argv = vm_argv(&a, &m);
  assert_non_null(strstr(after(argv, "-accel"), "tcg"));
  assert_int_equal(count(argv, "tsc_early_khz="), 1);
}

static void the_largest_machine_fits_an_order(void **state)
{
  cleanup_arena struct arena a = ARENA_INIT(1 << 18);
  static const char *const env[] = {"PATH=/bin", NULL};
  struct vm_machine m = {.accel = VM_EMULATION, .cpus = 64, .layers = GUEST_LAYER_MAX, .memory_mb = 1 << 20};
  const char *const *argv = vm_argv(&a, &m);
  const char *const *vars = vm_env(&a, env, &m, "e2b.local", GUEST_ALONE, "10.0.0.1");
  size_t bytes = 0;
  for (size_t i = 0; argv[i]; i++)
    bytes += strlen(argv[i]) + 1;
  assert_int_equal(count(argv, "virtio-blk-device"), GUEST_LAYER_MAX + 1);
  assert_true(length(argv) <= CHILD_TEXTS);
  assert_true(bytes < CHILD_PARAMS_MAX - 2048);
  assert_int_equal(length(vars), 5);
  assert_string_equal(vars[2], "GUEST_ADDRESS=2851995650");
}

int main(void)
{
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(only_the_scratch_disk_can_be_written),
      cmocka_unit_test(there_is_no_monitor_and_nothing_by_default),
      cmocka_unit_test(the_guest_meets_few_devices_and_qemu_denies_itself_the_rest),
      cmocka_unit_test(emulation_is_never_chosen_for_kvm),
      cmocka_unit_test(the_largest_machine_fits_an_order),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
