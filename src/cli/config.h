/* SPDX-License-Identifier: Apache-2.0 */
/* config.h - every setting of the server. A setting is one row in config.c, and lands in the struct of the role that
 * reads it. A flag beats the environment (CLOCHE_<NAME>), which beats the files, which beat the default. Of files, the
 * one that --config names (else CONFIG_FILE, where there is one) is read first, then FILE.d/NAME.conf by name: what is
 * read later wins. */
#ifndef CLOCHE_CONFIG_H
#define CLOCHE_CONFIG_H

#include "base/base.h"
#include "audit/audit_config.h"
#include "egress/egress_config.h"
#include "exporter/exporter_config.h"
#include "gate/gate_config.h"
#include "content/content_config.h"
#include "mcp/mcp_config.h"
#include "sender/sender_config.h"
#include "store/store_config.h"
#include "warden/core/warden_config.h"
#include "wire/sizes.h"

struct config {
  struct warden_config warden;
  struct gate_config gate;
  struct sender_config sender;
  struct egress_config egress;
  struct content_config content;
  struct mcp_role_config mcp;
  struct audit_config audit;
  struct exporter_config exporter;
  struct store_config store;
  /* the supervisor's own */
  const char *listen, *tls_listen, *tls_cert, *tls_key, *metrics_listen, *log_level, *console;
  unsigned gates;
  bool debian; /* false: `debian_program` is not used */
  char **from; /* where each setting's value comes from, in the order of the table; owned */
  /* flags only */
  char config_file[DATA_DIR_SIZE], ready_file[DATA_DIR_SIZE], role[16];
  int settings_fd; /* of a role: what the supervisor gave it; -1 = none */
  int64_t exit_with;
  bool print, help;
};

#define CONFIG_FILE  "/etc/cloche/cloche.conf" /* read when it is there and --config names none */
#define DATA_DEFAULT "/var/lib/cloche"
#define CONFIG_NONE  "none" /* --config none: no file is read */

/* Reads flags, environment and files. err names the place, the value and the remedy. The texts belong to c, also after
 * an error. */
int config_read(struct config *c, int argc, char **argv, struct err *err);
/* The same, but every mistake is told, not the first one alone. Returns how many there are. */
typedef void (*config_mistake_fn)(const char *text, void *arg);
size_t config_check(struct config *c, int argc, char **argv, config_mistake_fn mistake, void *arg);
void config_free(struct config *c);
void config_drop_admin_token(struct config *c); /* wiped: only the warden may hold it */
/* `name = value` with the source of each value; `changed`: only those that are not the defaults. */
void config_print(const struct config *c, bool changed);
void config_help(void);

/* All values as one text, for a role. `live`: those that SIGHUP changes; `secret`: the administrator's token too. */
void config_pack(const struct config *c, bool live, bool secret, struct buf *out);
/* Takes values from such a text; `live`: no others than those that SIGHUP changes. */
int config_unpack(struct config *c, struct str pack, bool live, struct err *err);
void config_share(struct config *c); /* settings that several roles read get to all of them */
/* Takes over what is live in `fresh`, and tells about each difference: taken is false where it needs a restart. Returns
 * how many were taken. */
typedef void (*config_change_fn)(const char *name, const char *old, const char *new, const char *from, bool taken,
                                 void *arg);
size_t config_adopt(struct config *c, const struct config *fresh, config_change_fn changed, void *arg);

#endif
