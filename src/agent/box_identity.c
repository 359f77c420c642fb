/* SPDX-License-Identifier: Apache-2.0 */
/* box_identity.c - see box_identity.h. */
#include "agent/box_identity.h"
#include "agent/machine_id.h"
#include <fcntl.h>
#include <sys/stat.h>

static void marker_write(const char *path, const char *text)
{
  int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0444);
  if (fd < 0) {
    log_debug("%s: %s", path, strerror(errno));
    return;
  }
  if (fd_write_all(fd, text, strlen(text)) < 0)
    log_debug("%s: %s", path, strerror(errno));
  close(fd);
}

void identity_markers(const struct agent *a)
{
  cleanup_free char *all =
      xasprintf("ENV_ID=%s\nTEMPLATE_ID=%s\nBUILD_ID=%s\n", a->template_id, a->template_id, a->build_id);
  mkdir("/run/e2b", 0755);
  marker_write("/run/e2b/.E2B_SANDBOX", "true");
  marker_write("/run/e2b/.E2B_SANDBOX_ID", a->box_id);
  marker_write("/run/e2b/.E2B_TEMPLATE_ID", a->template_id);
  marker_write("/.e2b", all);
}

void identity_variables(struct agent *a)
{
  env_set(&a->internal, STR("E2B_SANDBOX_ID"), str_of(a->box_id));
  env_set(&a->internal, STR("E2B_TEMPLATE_ID"), str_of(a->template_id));
  a->env_generation++;
}

void identity_publish(struct agent *a)
{
  identity_variables(a);
  identity_markers(a);
  machine_id_write(false);
}
