/* SPDX-License-Identifier: Apache-2.0 */
/* kernel_spec.h - which languages this box can run, and how.
 *
 * Specs are read from the kernels' own folder (driver native) and from Jupyter's folders. A language whose required
 * files are missing is known but absent: asking for it explains what the template would need. */
#ifndef CLOCHE_AGENT_INTERPRETER_KERNEL_SPEC_H
#define CLOCHE_AGENT_INTERPRETER_KERNEL_SPEC_H

#include "base/base.h"

#define KERNEL_SPEC_DIR "/usr/lib/cloche/kernels" /* CLOCHE_KERNELS in the environment names another */
/* CLOCHE_JUPYTER_PATH in the environment: a colon-separated list instead of Jupyter's usual folders. */

enum kernel_driver_kind { KERNEL_NATIVE, KERNEL_JUPYTER };

struct kernel_spec {
  char *language; /* canonical name */
  char **aliases; /* NULL-terminated */
  char **argv;
  char **requires;
  char **env; /* NAME=value, Jupyter specs only */
  char *needs;
  enum kernel_driver_kind driver;
  bool nursery;           /* understands --nursery */
  int renew_signal;       /* makes a busy kernel draw new random numbers; 0: none does */
  bool renew_message;     /* the same by a message; neither: between runs only */
  bool interrupt_message; /* Jupyter specs with interrupt_mode "message" */
};

struct kernel_specs; /* all that were found; specs stay valid until the program ends */

struct kernel_specs *kernel_specs_new(void);
void kernel_specs_free(struct kernel_specs *s);

/* The canonical name for what a client wrote: trimmed, lower case, common aliases; "" becomes python. */
int kernel_language(struct str given, char *out, size_t size);

/* The spec of a canonical name when it can run here. NULL with *err: "not found" or what is missing. Folders are
 * read again when a name is new, since a kernel may be installed while the box runs. */
const struct kernel_spec *kernel_specs_find(struct kernel_specs *s, const char *language, struct err *err);

#endif
