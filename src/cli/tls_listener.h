/* secure.h - the supervisor's part in https: the second listener, and the certificate that gates can't read by themselves. */
#ifndef CLOCHE_SECURE_H
#define CLOCHE_SECURE_H

#include "cli/config.h"
#include <sys/stat.h>

struct secure {
  char cert[600], key[600]; /* paths; "" = no https */
  int *listeners;           /* one per gate */
  int material;             /* sealed memory as control.h tells; -1 = none */
  struct stat seen[2];
  int64_t looked_us, tickets_us;
  char url[160];
};

/* serve.c: says whether a port is free; opens a socket that shares its port with others. */
typedef int (*secure_free_fn)(const char *host, uint16_t port, struct err *err);
typedef int (*secure_bind_fn)(const char *host, uint16_t port, int *fd, struct err *err);

int secure_open(struct secure *s, const struct config *c, size_t ngates, secure_free_fn is_free, secure_bind_fn bind_shared, struct err *err);
void secure_give(const struct secure *s, int control, size_t gate, bool listener); /* to a gate, by its control socket */
/* True when there is a new certificate to give. Looks at the files at most every two seconds unless `now`. */
bool secure_renewed(struct secure *s, bool now);

#endif
