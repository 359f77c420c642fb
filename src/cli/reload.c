/* SPDX-License-Identifier: Apache-2.0 */
/* reload.c - see reload.h. */
#include "cli/reload.h"

#include "wire/control.h"
#include <sys/mman.h>

static void set_log_level(const struct config *c)
{
  enum log_level level = LOG_INFO;
  log_level_parse(c->log_level, &level);
  log_level_set(level);
}

/* ---- in the supervisor ---- */

static void tell_change(const char *name, const char *old, const char *new, const char *from, bool taken, void *arg)
{
  if (taken)
    log_with(LOG_INFO, (const char *[]){"setting", name, "value", new, "source", from, NULL},
             "setting '%s' is '%s' now, no longer '%s'", name, new, old);
  else
    log_with(LOG_WARN, (const char *[]){"setting", name, "value", old, "source", from, NULL},
             "setting '%s' needs a restart to become '%s'; it stays '%s'", name, new, old);
}

bool settings_reload(struct config *c, int argc, char **argv)
{
  struct config fresh;
  struct err err = ERR_NONE;
  bool tell = false;
  if (config_read(&fresh, argc, argv, &err)) {
    log_error("settings are not reloaded, those in force stay: %s", err.msg);
  } else {
    size_t n = config_adopt(c, &fresh, tell_change, NULL);
    log_info("settings reloaded; %zu changed", n);
    set_log_level(c);
    tell = n > 0;
  }
  config_free(&fresh);
  return tell;
}

int settings_for_role(const struct config *c, const char *role)
{
  cleanup_buf struct buf b = BUF_INIT(1 << 20);
  config_pack(c, false, !strcmp(role, "warden"), &b);
  int fd = memfd_create("cloche-settings", MFD_CLOEXEC);
  int r = fd < 0 || buf_failed(&b) ? -1 : fd_write_all(fd, b.p, b.n);
  explicit_bzero(b.p, b.n);
  if (r && fd >= 0)
    close(fd);
  return r ? -1 : fd;
}

void settings_packet(const struct config *c, struct buf *out)
{
  buf_addc(out, CONTROL_SETTINGS);
  config_pack(c, true, false, out);
}

/* ---- in a role ---- */

static void take(struct str pack, void *arg)
{
  struct config *c = arg;
  struct err err = ERR_NONE;
  if (config_unpack(c, pack, true, &err))
    log_error("settings of the supervisor: %s", err.msg);
  config_share(c);
  set_log_level(c);
}

void settings_follow(struct config *c)
{
  control_on_settings(take, c);
}
