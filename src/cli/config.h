/* SPDX-License-Identifier: Apache-2.0 */
/* config.h - every setting of the server. A setting is one row in config.c, and lands in the struct of the role that
 * reads it. A flag beats the environment (CLOCHE_<NAME>), which beats the file, which beats the default. */
#ifndef CLOCHE_CONFIG_H
#define CLOCHE_CONFIG_H

#include "base/base.h"
#include "egress/egress_config.h"
#include "gate/gate_config.h"
#include "content/content_config.h"
#include "mcp/mcp_config.h"
#include "sender/sender_config.h"
#include "warden/core/warden_config.h"
#include "wire/sizes.h"

struct config {
  struct warden_config warden;
  struct gate_config gate;
  struct sender_config sender;
  struct egress_config egress;
  struct content_config content;
  struct mcp_role_config mcp;
  /* the supervisor's own */
  const char *listen, *tls_listen, *tls_cert, *tls_key, *metrics_listen, *log_level, *console;
  unsigned gates;
  bool debian; /* false: `debian_program` is not used */
  /* flags only */
  char config_file[DATA_DIR_SIZE], ready_file[DATA_DIR_SIZE], role[16];
  int64_t exit_with;
  bool print, help;
};

/* Reads flags, environment and file. err names the key, the value and the remedy. The texts belong to c, also after an
 * error. */
int config_read(struct config *c, int argc, char **argv, struct err *err);
void config_free(struct config *c);
void config_drop_admin_token(struct config *c); /* wiped: only the warden may hold it */
void config_print(const struct config *c);
void config_help(void);

#endif
