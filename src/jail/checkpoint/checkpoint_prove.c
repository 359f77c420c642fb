/* SPDX-License-Identifier: Apache-2.0 */
/* checkpoint_prove.c - can this host do it? Nothing criu says of itself answers that; one real dump and one real
 * restore of a tiny box do. */
#include "jail/checkpoint/checkpoint.h"

#include "base/path.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>

#define PROOF_IDS 4294705152u /* the last range but two: boxes count up from far below */

static int prove(const struct jail_criu *criu, const struct jail_spec *spec, const char *checkpoint, struct err *why)
{
  struct jail j = JAIL_NONE;
  int r = jail_spawn(spec, &j, why), status;
  if (r)
    return r;
  r = jail_dump(criu, spec, &j, checkpoint, why);
  jail_kill(spec->instance, spec->id, &j, NULL);
  jail_wait(&j, 5000, &status);
  jail_close(&j);
  if (!r)
    r = jail_remove(spec->instance, spec->id, NULL, why);
  if (r)
    return r;
  r = jail_restore(criu, spec, checkpoint, &j, why);
  if (!r && jail_wait(&j, 0, &status) != -ETIMEDOUT)
    r = err_set(why, -EIO, "a restored box exited at once");
  jail_kill(spec->instance, spec->id, &j, NULL);
  jail_wait(&j, 5000, &status);
  jail_close(&j);
  return r;
}

int jail_criu_prove(const struct jail_criu *criu, const char *instance, const char *dir, const char *lower,
                    const char *const *argv, struct err *why)
{
  static const char *const env[] = {"PATH=/bin", NULL};
  const char *const lowers[] = {lower, NULL};
  char id[24], box[PATH_MAX], checkpoint[PATH_MAX], shifted[PATH_MAX], runtime[PATH_MAX];
  snprintf(id, sizeof(id), "proof-%d", getpid());
  if ((size_t)snprintf(box, sizeof(box), "%s/%s", dir, id) >= sizeof(box) ||
      (size_t)snprintf(shifted, sizeof(shifted), "%s/%s.shifted", dir, id) >= sizeof(shifted) ||
      (size_t)snprintf(checkpoint, sizeof(checkpoint), "%s/%s.checkpoint", dir, id) >= sizeof(checkpoint))
    return err_set(why, -ENAMETOOLONG, "path too long: %s", dir);
  if ((size_t)snprintf(runtime, sizeof(runtime), "%s" JAIL_RUNTIME, lower) >= sizeof(runtime))
    return err_set(why, -ENAMETOOLONG, "path too long: %s", lower);
  if (access(criu->program, X_OK))
    return err_errno(why, "no criu at %s", criu->program);
  struct jail_spec spec = {.instance = instance,
                           .id = id,
                           .dir = box,
                           .lowers = lowers,
                           .runtime = access(runtime, F_OK) ? NULL : runtime,
                           .shifted = shifted,
                           .id_base = PROOF_IDS,
                           .hostname = "proof",
                           .argv = argv,
                           .env = env,
                           .boot_fd = -1,
                           .limits = {.pids = 64}};
  int r = prove(criu, &spec, checkpoint, why);
  jail_remove(instance, id, box, NULL);
  jail_checkpoint_remove(checkpoint, NULL);
  path_remove_tree(AT_FDCWD, shifted);
  return r;
}

enum jail_criu_origin jail_criu_origin(const char *program)
{
  char real[PATH_MAX], path[PATH_MAX];
  cleanup_buf struct buf text = BUF_INIT(4096);
  if (!realpath(program, real))
    return JAIL_CRIU_FOREIGN;
  char *slash = strrchr(real, '/');
  if ((size_t)snprintf(path, sizeof(path), "%.*s/provenance", (int)(slash - real), real) >= sizeof(path) ||
      file_read(path, &text))
    return JAIL_CRIU_FOREIGN;
  return str_search(buf_str(&text), STR("\ntried yes\n")) >= 0 ? JAIL_CRIU_TRIED : JAIL_CRIU_UNTRIED;
}
