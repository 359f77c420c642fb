/* SPDX-License-Identifier: Apache-2.0 */
/* vm_argv.c - see vm_argv.h. The machine is microvm: no PCI, no BIOS but a few kilobytes, devices over virtio-mmio, no
 * display, no USB, no monitor. */
#include "jail/vm/vm_argv.h"
#include "wire/guest_frame.h"

#define ARGS_MAX 160
#define ENV_MAX  64

struct list {
  const char **p;
  size_t n, room;
};

static void put(struct list *l, const char *text)
{
  if (l->n + 1 < l->room)
    l->p[l->n++] = text;
}

static void put_all(struct list *l, const char *const *texts)
{
  for (; *texts; texts++)
    put(l, *texts);
}

static void put_disk(struct arena *a, struct list *l, int fd, const char *serial, bool writable)
{
  put(l, "-add-fd");
  put(l, arena_fmt(a, "fd=%d,set=%d", fd, fd));
  put(l, "-blockdev");
  put(l, arena_fmt(a,
                   "driver=raw,node-name=%s,read-only=%s,file.driver=file,file.filename=/dev/fdset/%d,"
                   "file.locking=off,file.aio=threads%s",
                   serial, writable ? "off" : "on", fd, writable ? ",discard=unmap,file.discard=unmap" : ""));
  put(l, "-device");
  put(l, arena_fmt(a, "virtio-blk-device,drive=%s,serial=%s", serial, serial));
}

static void put_machine(struct arena *a, struct list *l, const struct vm_machine *m)
{
  static const char *const first[] = {
      "/warder", "/qemu", "-sandbox", "on,obsolete=deny,elevateprivileges=deny,spawn=deny,resourcecontrol=deny",
      "-L",      "/fw",   "-M",       "microvm,rtc=on",
      NULL};
  static const char *const rest[] = {"-nodefaults", "-no-user-config", "-display",   "none",    "-no-reboot", "-serial",
                                     "stdio",       "-kernel",         "/k/vmlinux", "-initrd", "/k/initrd",  NULL};
  put_all(l, first);
  put(l, "-accel");
  put(l, m->accel == VM_KVM ? "kvm" : "tcg,thread=multi");
  put(l, "-cpu");
  put(l, m->accel == VM_KVM ? "host" : "max");
  put(l, "-smp");
  put(l, arena_fmt(a, "%u", m->cpus));
  put(l, "-m");
  put(l, arena_fmt(a, "%llu", (unsigned long long)m->memory_mb));
  put_all(l, rest);
}

const char *const *vm_argv(struct arena *a, const struct vm_machine *m)
{
  struct list l = {.p = arena_alloc(a, ARGS_MAX * sizeof(*l.p)), .room = ARGS_MAX};
  cleanup_buf struct buf parameters = BUF_INIT(2048);
  put_machine(a, &l, m);
  vm_kernel_parameters(&parameters, m->accel, "");
  put(&l, "-append");
  put(&l, arena_z(a, buf_str(&parameters)));
  put(&l, "-device");
  put(&l, "virtio-serial-device");
  put(&l, "-chardev");
  put(&l, arena_fmt(a, "socket,id=boot,fd=%d", GUEST_PORT_FD));
  put(&l, "-device");
  put(&l, "virtserialport,chardev=boot,name=" GUEST_PORT_NAME);
  put(&l, "-device");
  put(&l, "virtio-rng-device");
  put(&l, "-netdev");
  put(&l, arena_fmt(a, "tap,id=n0,fd=%d", VM_TAP_FD));
  put(&l, "-device");
  put(&l, "virtio-net-device,netdev=n0,mac=" GUEST_MAC_TEXT);
  put_disk(a, &l, VM_SCRATCH_FD, "scratch", true);
  for (unsigned i = 0; i < m->layers; i++)
    put_disk(a, &l, VM_LAYER_FD + (int)i, arena_fmt(a, "l%u", i), false);
  l.p[l.n] = NULL;
  return l.p;
}

const char *const *vm_env(struct arena *a, const char *const *env, const struct vm_machine *m, const char *hostname,
                          uint32_t address, const char *nameserver)
{
  struct list l = {.p = arena_alloc(a, ENV_MAX * sizeof(*l.p)), .room = ENV_MAX};
  put_all(&l, env);
  put(&l, arena_fmt(a, "GUEST_HOSTNAME=%s", hostname));
  put(&l, arena_fmt(a, "GUEST_ADDRESS=%lu", (unsigned long)address));
  put(&l, arena_fmt(a, "GUEST_LAYERS=%u", m->layers));
  if (nameserver)
    put(&l, arena_fmt(a, "GUEST_NAMESERVER=%s", nameserver));
  l.p[l.n] = NULL;
  return l.p;
}
