/* SPDX-License-Identifier: Apache-2.0 */
/* tls_listener.h - the supervisor's part in https: the second listener, and the certificate that gates can't read by
 * themselves. */
#ifndef CLOCHE_CLI_TLS_LISTENER_H
#define CLOCHE_CLI_TLS_LISTENER_H

#include "cli/config.h"
#include "cli/service_manager.h"
#include <sys/stat.h>

struct tls_listener {
  char cert[DATA_PATH_SIZE], key[DATA_PATH_SIZE]; /* paths; "" = no https */
  int *listeners;                                 /* one per gate */
  int material;                                   /* sealed memory as control.h tells; -1 = none */
  struct stat seen[2];
  int64_t looked_us, tickets_us;
  char url[URL_SIZE];
};

int tls_listener_open(struct tls_listener *s, const struct config *c, size_t ngates, struct service_manager *m,
                      struct err *err);
void tls_listener_give(const struct tls_listener *s, int control, size_t gate,
                       bool listener); /* to a gate, by its control socket */
/* True when there is a new certificate to give. Looks at the files at most every two seconds unless `now`. */
bool tls_listener_renewed(struct tls_listener *s, bool now);

#endif
