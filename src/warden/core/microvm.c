/* SPDX-License-Identifier: Apache-2.0 */
/* microvm.c - see microvm.h. */
#include "warden/core/microvm.h"

#include "jail/fs/disk_image.h"
#include "jail/vm/vm_parts.h"
#include "warden/core/box_state.h"
#include "warden/core/egress.h"
#include "warden/core/warden_state.h"
#include "wire/guest_frame.h"
#include "wire/isolation.h"
#include "wire/wire.h"
#include <limits.h>
#include <stdio.h>
#include <sys/stat.h>

#define KVM_PATIENCE_S      5
#define EMULATED_PATIENCE_S 110

/* Parts are installed where somebody wants guests; elsewhere this costs one look. */
void microvm_open(struct warden *w)
{
  const struct warden_config *c = w->config;
  struct err why = ERR_NONE;
  int r = vm_parts_check(c->microvm, &why);
  if (!r && !c->microvm_emulation)
    r = MIN(vm_probe(c->microvm, VM_KVM, VM_PROBE_MS, &why), 0);
  w->microvm_on = !r;
  snprintf(w->microvm_why, sizeof(w->microvm_why), "%s", why.msg);
  if (!r && c->microvm_emulation)
    log_warn(
        "guests of isolation microvm are emulated (microvm_emulation): for tests, QEMU promises no isolation then");
  else if (!r)
    log_info("isolation microvm is available");
  else if (c->isolation_microvm)
    log_warn("isolation is microvm, and no guest can be started, so no box either: %s", why.msg);
}

/* What holds for a create that names no tier. */
static unsigned wished(const struct warden *w, const struct build *build, struct str team)
{
  const struct row_team *t = catalog_team(w->catalog, team);
  if (build->row.isolation)
    return build->row.isolation;
  if (t && t->isolation)
    return t->isolation;
  return w->config->isolation_microvm ? ISOLATION_MICROVM : ISOLATION_PROCESS;
}

unsigned microvm_choose(const struct warden *w, const struct build *build, struct str team, unsigned flags)
{
  bool process = flags & BOX_PROCESS, guest = flags & BOX_MICROVM;
  flags &= ~(unsigned)(BOX_PROCESS | BOX_MICROVM);
  return flags | (guest || (!process && wished(w, build, team) == ISOLATION_MICROVM) ? BOX_MICROVM : 0);
}

int microvm_admit(const struct warden *w, const struct box_params *o, const struct build *build, unsigned flags,
                  struct err *err)
{
  if (!(flags & BOX_MICROVM))
    return 0;
  if (!w->microvm_on)
    return err_set(err, -ENOSYS, "isolation 'microvm' can't be had on this server: %s", w->microvm_why);
  if (o->mounts.n || (build->row.mounts && build->row.mounts[0]))
    return err_set(err, -EINVAL, "'volumeMounts' can't be used with isolation 'microvm' yet");
  if (build->row.kind != BUILD_PLAIN)
    return err_set(err, -EINVAL,
                   "a snapshot or fork can't be created with isolation 'microvm' yet: its memory is that "
                   "of processes; ask for isolation 'process'");
  if (flags & BOX_AUTO_COLD)
    return err_set(err, -EINVAL, "'autoPauseMemory' false can't be used with isolation 'microvm' yet");
  return 0;
}

void microvm_spec(const struct warden *w, unsigned slot, struct arena *a, struct jail_spec *spec)
{
  struct jail_vm *vm = arena_alloc(a, sizeof(*vm));
  uint32_t address = egress_address(w, slot);
  bool emulated = w->config->microvm_emulation;
  *vm = (struct jail_vm){.parts = w->config->microvm,
                         .emulated = emulated,
                         .cpus = spec->limits.cpus,
                         .memory = spec->limits.memory,
                         .address = address ? address : GUEST_ALONE};
  spec->limits.memory += emulated ? JAIL_VM_OVERHEAD_EMULATED : JAIL_VM_OVERHEAD;
  spec->limits.pids = JAIL_VM_PIDS;
  spec->vm = vm;
}

unsigned microvm_patience_s(const struct warden *w)
{
  return w->config->microvm_emulation ? EMULATED_PATIENCE_S : KVM_PATIENCE_S;
}

/* A box that an earlier warden started is not this one's child: its status is not known. */
const char *microvm_cause(const struct box *b)
{
  int status = -1;
  jail_wait(&b->jail, 0, &status);
  switch (status) {
  case GUEST_ENDED:
    return "crashed: the guest ended by itself";
  case GUEST_PANICKED:
    return "crashed: the guest's kernel panicked";
  case GUEST_QEMU_KILLED:
    return "crashed: the guest's QEMU was killed";
  case GUEST_QEMU_FAILED:
    return "crashed: the guest's QEMU failed";
  default:
    return "crashed: the guest, or its QEMU, ended unexpectedly";
  }
}

/* The image is sparse, and what the guest trims goes back. Its filesystem is the guest's to read. */
uint64_t microvm_disk_used(const char *dir)
{
  char image[PATH_MAX];
  struct stat st;
  snprintf(image, sizeof(image), "%s/" DISK_IMAGE_NAME, dir);
  return lstat(image, &st) ? 0 : (uint64_t)st.st_blocks * 512;
}

int microvm_refuse(const struct box *b, const char *operation, struct err *err)
{
  if (!(b->row.flags & BOX_MICROVM))
    return 0;
  return err_set(err, -EINVAL, "a sandbox of isolation 'microvm' can't be %s yet", operation);
}
