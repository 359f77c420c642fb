/* SPDX-License-Identifier: Apache-2.0 */
/* interp_context.c - a context's queue of runs, and the lifecycle of its kernel; see interp_context.h.
 *
 *   COLD --start--> STARTING --ready--> MOVING --moved--> IDLE <--done-- RUNNING
 *     ^                |                   |                |               ^  |
 *     +----------------+------ death ------+----------------+---------------+--+
 *
 * MOVING is left out where the kernel starts in the right directory. A run whose client left stays active until the
 * kernel says it is over: it is interrupted, again every few seconds, and what it prints is dropped. One whose client
 * was cut off, as by a pause of the box, keeps it too and is let run to its end; one that still waited keeps its place,
 * as a copy of the context's own. A kernel that can't even start is tried twice; then those who wait get an error, and
 * the next request tries again after a pause. */
#include "agent/interpreter/interp_context.h"
#include "agent/agent.h"

#define INTERRUPT_AGAIN_MS 2000
#define QUICK_DEATH_US     5000000 /* a kernel that lived shorter is not started again unless somebody waits */
#define BACKOFF_FIRST_MS   500
#define BACKOFF_MOST_MS    30000
#define STRAY_MAX          ((size_t)64 << 20) /* bytes of code and variables kept for a client that was cut off */

enum state { COLD, STARTING, MOVING, IDLE, RUNNING };

struct context {
  struct contexts *all;
  struct context *next;
  char id[UUID_TEXT];
  const struct kernel_spec *spec;
  char *language, *cwd;
  bool is_default, visible, deleted;
  enum state state;
  struct kernel *kernel;
  bool env_told; /* this kernel process has the sandbox's variables, of generation kernel->env_generation */
  int64_t born_us;
  unsigned failures; /* starts that failed in a row */
  int64_t not_before;
  struct run *current; /* NULL while RUNNING: abandoned, or detached */
  bool detached;       /* what runs goes on though nobody hears it */
  bool interrupting;   /* what runs was told to stop by name */
  bool unsent;         /* and hears of it once it has begun */
  char running_id[UUID_TEXT];
  struct run *head, *tail;
  size_t queued;
  struct context_wait *waits;
  uv_timer_t timer; /* COLD: end of the pause; RUNNING: next interrupt */
};

struct contexts {
  const struct kernel_host *host;
  struct kernel_specs *specs;
  size_t queue_max;
  struct context *first;
};

static void context_start(struct context *c);
static void context_pump(struct context *c);
static const struct kernel_listener listener;

/* ---- telling ---- */

static void fault_line(void *arg, struct str line)
{
  struct run *r = arg;
  r->ops->line(r, line);
}

/* Ends a run that no kernel has seen. */
static void run_fault(struct run *r, const char *name, const char *value, const char *traceback)
{
  struct output o;
  output_init(&o, fault_line, r);
  output_begin(&o);
  output_fault(&o, name, value, traceback);
  output_end(&o);
  output_free(&o);
  r->context = NULL;
  r->ops->end(r);
}

/* Ends the run that is on, through its own output so that it gets no second error. */
static void current_fault(struct context *c, const char *name, const char *value, const char *traceback)
{
  struct run *r = c->current;
  if (!r)
    return;
  output_flush(&c->kernel->output);
  output_fault(&c->kernel->output, name, value, traceback);
  output_end(&c->kernel->output);
  c->current = NULL;
  r->context = NULL;
  r->ops->end(r);
}

static struct run *queue_pop(struct context *c)
{
  struct run *r = c->head;
  if (!r)
    return NULL;
  c->head = r->next;
  if (!c->head)
    c->tail = NULL;
  c->queued--;
  r->next = NULL;
  return r;
}

static void queue_fault(struct context *c, const char *name, const char *value, const char *traceback)
{
  for (size_t left = c->queued; left > 0 && c->head; left--)
    run_fault(queue_pop(c), name, value, traceback);
}

/* Everyone who waited is called. They may delete the context or wait again: only those there now are served. */
static void waits_tell(struct context *c, int code, const char *why)
{
  struct context_wait *w = c->waits;
  c->waits = NULL;
  while (w) {
    struct context_wait *next = w->next;
    w->context = NULL;
    w->ready(w, code, why);
    w = next;
  }
}

static void wait_add(struct context *c, struct context_wait *w)
{
  struct context_wait **at = &c->waits;
  while (*at)
    at = &(*at)->next;
  w->context = c;
  w->next = NULL;
  *at = w;
}

void context_wait_cancel(struct context_wait *w)
{
  if (!w->context)
    return;
  struct context_wait **at = &w->context->waits;
  while (*at && *at != w)
    at = &(*at)->next;
  if (*at)
    *at = w->next;
  w->context = NULL;
}

/* ---- the kernel's life ---- */

static void on_again(uv_timer_t *t)
{
  struct context *c = t->data;
  if (c->deleted)
    return;
  if (c->state == COLD) {
    context_pump(c);
  } else if (c->state == RUNNING && (c->interrupting || (!c->current && !c->detached))) {
    c->unsent = false;
    kernel_interrupt(c->kernel);
    uv_timer_start(&c->timer, on_again, INTERRUPT_AGAIN_MS, 0);
  }
}

/* The kernel is not available: nobody is left waiting, and the next try is put off, longer each time. */
static void context_give_up(struct context *c, const char *why)
{
  unsigned shift = MIN(c->failures, 7u);
  c->not_before = clock_mono_us() + 1000 * (int64_t)MIN((unsigned)BACKOFF_FIRST_MS << shift, (unsigned)BACKOFF_MOST_MS);
  log_warn("context %s: no %s kernel: %s", c->id, c->spec->language, why);
  waits_tell(c, -EIO, why);
  if (!c->visible && !c->deleted)
    context_delete(c);
  else
    queue_fault(c, "ContextRestarting", "Context was restarted", why);
}

static void start_failed(struct context *c, const char *why)
{
  c->state = COLD;
  c->failures++;
  if (c->failures < 2)
    context_start(c);
  else
    context_give_up(c, why);
}

static void context_start(struct context *c)
{
  struct err err = ERR_NONE;
  c->state = STARTING;
  c->env_told = false;
  c->born_us = clock_mono_us();
  c->kernel = kernel_new(c->all->host, c->spec, &listener, c, &err);
  if (!c->kernel)
    start_failed(c, err.msg);
}

static void kernel_drop(struct context *c)
{
  if (c->kernel)
    kernel_end(c->kernel);
  c->kernel = NULL;
  c->state = COLD;
  c->interrupting = c->unsent = false;
  uv_timer_stop(&c->timer);
}

static void context_settled(struct context *c)
{
  c->state = IDLE;
  c->failures = 0;
  c->visible = true;
  waits_tell(c, 0, NULL);
  if (!c->deleted)
    context_pump(c);
}

static void on_ready(void *arg)
{
  struct context *c = arg;
  if (c->state != STARTING)
    return;
  if (strcmp(c->cwd, c->kernel->home) == 0) {
    context_settled(c);
    return;
  }
  c->state = MOVING;
  kernel_cd(c->kernel, c->cwd);
}

static void on_moved(void *arg, bool ok, const char *reason)
{
  struct context *c = arg;
  if (c->state != MOVING)
    return;
  if (!ok)
    log_warn("context %s: can't enter %s: %s", c->id, c->cwd, reason);
  if (ok || c->visible || c->is_default) {
    context_settled(c);
    return;
  }
  waits_tell(c, CONTEXT_NO_CWD, reason);
  if (!c->deleted)
    context_delete(c);
}

static void on_line(void *arg, struct str line)
{
  struct context *c = arg;
  if (c->unsent && c->kernel->heard) {
    c->unsent = false;
    kernel_interrupt(c->kernel);
  }
  if (c->current)
    c->current->ops->line(c->current, line);
}

static void on_done(void *arg)
{
  struct context *c = arg;
  struct run *r = c->current;
  c->state = IDLE;
  c->current = NULL;
  c->detached = c->interrupting = c->unsent = false;
  uv_timer_stop(&c->timer);
  kernel_resume(c->kernel);
  if (r) {
    r->context = NULL;
    r->ops->end(r);
  }
  if (!c->deleted)
    context_pump(c);
}

static void queue_front(struct context *c, struct run *r)
{
  r->next = c->head;
  c->head = r;
  if (!c->tail)
    c->tail = r;
  c->queued++;
}

static void on_death(void *arg, const char *cause)
{
  struct context *c = arg;
  enum state was = c->state;
  struct run *r = c->current;
  if (r && !c->kernel->heard && !r->retried && !c->interrupting) {
    /* It was gone before it saw the cell (exit() in the one before): the next one runs it. */
    r->retried = true;
    c->current = NULL;
    queue_front(c, r);
  }
  current_fault(c, "ContextRestarting", "Context was restarted", cause);
  if (c->deleted)
    return;
  kernel_drop(c);
  if (was == STARTING || was == MOVING)
    start_failed(c, cause);
  else if (c->head || c->waits || clock_mono_us() - c->born_us > QUICK_DEATH_US)
    context_start(c);
}

static const struct kernel_listener listener = {
    .ready = on_ready,
    .moved = on_moved,
    .line = on_line,
    .done = on_done,
    .death = on_death,
};

/* ---- runs ---- */

/* The sandbox's own variables: once per kernel process, and again when they changed. */
static void env_tell(struct context *c)
{
  const struct agent *a = c->all->host->agent;
  struct env cleanup_env env = {0};
  const char *local = getenv("E2B_LOCAL");
  unsigned generation = a ? a->env_generation : 0;
  if (c->env_told && c->kernel->env_generation == generation)
    return;
  if (local && *local)
    env_set(&env, STR("E2B_TEST_VARIABLE"), STR("true"));
  else if (a)
    agent_envs(a, &env);
  bool renew = a && c->kernel->renewals != a->renewals;
  if ((env.n || renew) && kernel_set_env(c->kernel, &env, renew) < 0)
    return;
  c->env_told = true;
  c->kernel->renewals = a ? a->renewals : 0;
  c->kernel->env_generation = generation;
}

void contexts_tell(struct contexts *all)
{
  for (struct context *c = all->first; c; c = c->next)
    if (c->state == IDLE && c->spec->driver == KERNEL_NATIVE)
      env_tell(c);
}

static void context_pump(struct context *c)
{
  if (c->state == COLD && (c->head || c->waits)) {
    int64_t left = c->not_before - clock_mono_us();
    if (left > 0)
      uv_timer_start(&c->timer, on_again, (uint64_t)left / 1000 + 1, 0);
    else
      context_start(c);
    return;
  }
  while (c->state == IDLE && c->head) {
    struct run *r = queue_pop(c);
    env_tell(c);
    c->current = r;
    c->state = RUNNING;
    c->detached = c->interrupting = c->unsent = false;
    memcpy(c->running_id, r->id, sizeof(c->running_id));
    if (kernel_run(c->kernel, r->code, r->env) == 0)
      return;
    c->current = NULL;
    c->state = IDLE;
    run_fault(r, "WebSocketError", "Failed to send execution request", "");
  }
}

int context_submit(struct context *c, struct run *r)
{
  if (context_full(c))
    return -EAGAIN;
  r->context = c;
  r->next = NULL;
  r->retried = false;
  if (c->tail)
    c->tail->next = r;
  else
    c->head = r;
  c->tail = r;
  c->queued++;
  context_pump(c);
  return 0;
}

static void queue_remove(struct context *c, struct run *r)
{
  struct run **at = &c->head, *before = NULL;
  while (*at && *at != r) {
    before = *at;
    at = &(*at)->next;
  }
  if (!*at)
    return;
  *at = r->next;
  if (c->tail == r)
    c->tail = before;
  c->queued--;
}

/* Takes the run from its context; the context when it was active, else NULL. */
static struct context *run_leave(struct run *r)
{
  struct context *c = r->context;
  if (!c)
    return NULL;
  r->context = NULL;
  if (c->current != r) {
    queue_remove(c, r);
    return NULL;
  }
  c->current = NULL;
  return c;
}

void run_abandon(struct run *r)
{
  struct context *c = run_leave(r);
  if (!c)
    return;
  kernel_interrupt(c->kernel);
  uv_timer_start(&c->timer, on_again, INTERRUPT_AGAIN_MS, 0);
  kernel_resume(c->kernel);
}

/* ---- interrupts by name ---- */

/* A program that gets a signal before it has begun with the cell may miss it or, while it starts over, die of it. */
static void interrupt_current(struct context *c)
{
  c->interrupting = true;
  c->unsent = !c->kernel->heard;
  if (!c->unsent)
    kernel_interrupt(c->kernel);
  uv_timer_start(&c->timer, on_again, INTERRUPT_AGAIN_MS, 0);
}

bool context_interrupt(struct context *c, struct str id)
{
  if (c->state == RUNNING && (!id.p || str_is(id, c->running_id))) {
    interrupt_current(c);
    return true;
  }
  if (!id.p || !id.n)
    return false;
  for (struct run *r = c->head; r; r = r->next) {
    if (!str_is(id, r->id))
      continue;
    queue_remove(c, r);
    run_fault(r, "ExecutionCancelled", "Execution was cancelled before it began", "");
    return true;
  }
  return false;
}

bool contexts_interrupt(struct contexts *all, struct str id)
{
  for (struct context *c = all->first; c; c = c->next)
    if (context_interrupt(c, id))
      return true;
  return false;
}

/* ---- runs without a client ---- */

struct stray {
  struct run run;
  struct arena arena;
};

static void stray_line(struct run *r, struct str line)
{
  (void)r;
  (void)line;
}

static void stray_end(struct run *r)
{
  struct stray *s = (struct stray *)((char *)r - offsetof(struct stray, run));
  arena_free(&s->arena);
  free(s);
}

static const struct run_ops stray_ops = {.line = stray_line, .end = stray_end};

/* Code and variables belong to the request, which goes. */
static struct stray *stray_of(const struct run *r)
{
  cleanup_buf struct buf text = BUF_INIT(STRAY_MAX);
  struct stray *s = xcalloc(1, sizeof(*s));
  s->arena.max = STRAY_MAX;
  s->run = *r;
  s->run.ops = &stray_ops;
  s->run.code = arena_str(&s->arena, r->code);
  if (r->env) {
    json_put(&text, r->env, false);
    s->run.env = json_read(&s->arena, buf_str(&text), JSON_REPAIR_UTF8, &(struct json_error){0});
  }
  if (s->run.code.p && (!r->env || s->run.env))
    return s;
  stray_end(&s->run);
  return NULL;
}

/* Takes the place of a run that waits. False: it is active, or there is no memory for it. */
static bool run_stray(struct run *r)
{
  struct context *c = r->context;
  struct run **at = &c->head;
  while (*at && *at != r)
    at = &(*at)->next;
  struct stray *s = *at ? stray_of(r) : NULL;
  if (!s)
    return false;
  *at = &s->run;
  if (c->tail == r)
    c->tail = &s->run;
  r->context = NULL;
  return true;
}

void run_detach(struct run *r)
{
  if (r->context && run_stray(r))
    return;
  struct context *c = run_leave(r);
  if (!c)
    return;
  c->detached = true;
  kernel_resume(c->kernel);
}

void run_pause(struct run *r)
{
  if (r->context && r->context->current == r)
    kernel_pause(r->context->kernel);
}

void run_resume(struct run *r)
{
  if (r->context && r->context->current == r)
    kernel_resume(r->context->kernel);
}

/* ---- contexts ---- */

/* Our own kernels have one name; a Jupyter kernel goes by the name it was asked for. */
static const char *language_name(const struct kernel_spec *spec, const char *asked)
{
  return spec->driver == KERNEL_NATIVE ? spec->language : asked;
}

struct context *context_new(struct contexts *all, const struct kernel_spec *spec, const char *language, const char *cwd,
                            bool is_default, struct context_wait *w)
{
  struct context *c = xcalloc(1, sizeof(*c));
  struct context **at = &all->first;
  c->all = all;
  c->spec = spec;
  c->language = xstrdup(language_name(spec, language));
  c->cwd = xstrdup(cwd);
  c->is_default = is_default;
  c->visible = !w;
  uuid4(c->id);
  uv_timer_init(all->host->loop, &c->timer);
  c->timer.data = c;
  while (*at)
    at = &(*at)->next;
  *at = c;
  if (w) {
    wait_add(c, w);
    context_start(c);
  }
  return c;
}

static void on_timer_closed(uv_handle_t *h)
{
  struct context *c = h->data;
  free(c->language);
  free(c->cwd);
  free(c);
}

void context_delete(struct context *c)
{
  static const char gone[] = "Connection to the execution was closed before the execution was finished";
  struct context **at = &c->all->first;
  if (c->deleted)
    return;
  c->deleted = true;
  while (*at && *at != c)
    at = &(*at)->next;
  if (*at)
    *at = c->next;
  current_fault(c, "UnexpectedEndOfExecution", gone, "");
  kernel_drop(c);
  while (c->head)
    run_fault(queue_pop(c), "UnexpectedEndOfExecution", gone, "");
  waits_tell(c, -ECANCELED, "the context was removed");
  uv_close((uv_handle_t *)&c->timer, on_timer_closed);
}

void context_restart(struct context *c, struct context_wait *w)
{
  current_fault(c, "UnexpectedEndOfExecution",
                "Connection to the execution was closed before the execution was finished", "");
  if (c->deleted)
    return;
  kernel_drop(c);
  c->failures = 0;
  c->not_before = 0;
  if (w)
    wait_add(c, w);
  context_start(c);
}

int context_adopt(struct context *c, const int fds[3], pid_t pid)
{
  if (c->kernel)
    return -EEXIST;
  c->state = STARTING;
  c->env_told = false;
  c->born_us = clock_mono_us();
  c->kernel = kernel_native_adopt(c->all->host, c->spec, &listener, c, fds, pid);
  return 0;
}

void context_warm(struct context *c, struct context_wait *w)
{
  if (w && (c->state == IDLE || c->state == RUNNING)) {
    w->context = NULL;
    w->ready(w, 0, NULL);
    return;
  }
  if (w)
    wait_add(c, w);
  if (c->state == COLD && !w)
    context_start(c);
  else
    context_pump(c);
}

const char *context_id(const struct context *c)
{
  return c->id;
}

const char *context_language(const struct context *c)
{
  return c->language;
}

const char *context_cwd(const struct context *c)
{
  return c->cwd;
}

bool context_visible(const struct context *c)
{
  return c->visible;
}

bool context_full(const struct context *c)
{
  return c->queued >= c->all->queue_max;
}

void contexts_renew(struct contexts *all)
{
  for (struct context *c = all->first; c; c = c->next)
    if (c->state == RUNNING && c->kernel)
      kernel_renew(c->kernel);
}

struct contexts *contexts_new(const struct kernel_host *host, struct kernel_specs *specs, size_t queue_max)
{
  static const char *const at_start[] = {"python", "javascript"};
  struct contexts *all = xcalloc(1, sizeof(*all));
  all->host = host;
  all->specs = specs;
  all->queue_max = queue_max;
  for (size_t i = 0; i < ARRAY_LEN(at_start); i++) {
    const struct kernel_spec *spec = kernel_specs_find(specs, at_start[i], NULL);
    if (spec)
      context_new(all, spec, at_start[i], KERNEL_HOME, true, NULL);
  }
  return all;
}

void contexts_free(struct contexts *all)
{
  while (all->first)
    context_delete(all->first);
  free(all);
}

struct context *contexts_next(struct contexts *all, const struct context *c)
{
  struct context *next = c ? c->next : all->first;
  while (next && !next->visible)
    next = next->next;
  return next;
}

struct context *contexts_find(struct contexts *all, struct str id)
{
  for (struct context *c = all->first; c; c = c->next)
    if (c->visible && str_is(id, c->id))
      return c;
  return NULL;
}

struct context *contexts_default(struct contexts *all, const char *language)
{
  for (struct context *c = all->first; c; c = c->next)
    if (c->is_default && strcmp(c->language, language) == 0)
      return c;
  return NULL;
}
