/* SPDX-License-Identifier: Apache-2.0 */
/* exporter_config.h - the settings of the exporter. The rows of src/cli/config.c write them; the role only reads. */
#ifndef CLOCHE_EXPORTER_CONFIG_H
#define CLOCHE_EXPORTER_CONFIG_H

#include <stdbool.h>
#include <stdint.h>

struct exporter_config {
  const char *endpoint;     /* URL of a collector without /v1/...; "" = nothing is exported */
  const char *headers_file; /* "name: value" lines; "" = none */
  const char *ca;           /* PEM file of authorities beside the system's; "" = none */
  unsigned uid;             /* who it becomes; 0 = stays (tests without root) */
  unsigned seconds;         /* longest wait for an answer */
  unsigned batch_ms;        /* how long spans are gathered */
  bool logs;                /* of boxes are exported */
};

#endif
