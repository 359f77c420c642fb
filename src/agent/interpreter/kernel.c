/* SPDX-License-Identifier: Apache-2.0 */
/* kernel.c - what both drivers share: the calls of the interface, spares, starting a program, and exit messages.
 *
 * A language with a nursery keeps one spare kernel once a box has asked for a second one: contexts come in groups, and
 * a pre-forked one is there at once. It is forked in a quiet moment and ended when nobody wants it. */
#include "agent/interpreter/kernel.h"
#include "agent/agent.h"
#include "agent/spawn.h"
#include <signal.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

#define SPARE_QUIET_MS  25 /* after the last start, so that bursts and first cells have the processor */
#define SPARE_EXPIRE_MS 60000

static struct spare {
  const struct kernel_host *host;
  const struct kernel_spec *spec; /* NULL = free slot */
  struct kernel *kernel;
  unsigned starts;
  uv_timer_t *timer; /* freed by its own close */
} spares[4];

static struct spare *spare_of(const struct kernel_host *host, const struct kernel_spec *spec)
{
  for (size_t i = 0; i < ARRAY_LEN(spares); i++) {
    if (!spares[i].spec) {
      spares[i] = (struct spare){.host = host, .spec = spec, .timer = xcalloc(1, sizeof(*spares[i].timer))};
      uv_timer_init(host->loop, spares[i].timer);
      spares[i].timer->data = &spares[i];
    }
    if (spares[i].spec == spec)
      return &spares[i];
  }
  return NULL;
}

static void spare_drop(struct spare *s)
{
  if (s->kernel)
    kernel_end(s->kernel);
  s->kernel = NULL;
}

static void spare_ready(void *arg)
{
  (void)arg;
}

static void spare_death(void *arg, const char *cause)
{
  (void)cause;
  spare_drop(arg);
}

/* A spare never runs anything, so it can say nothing else. */
static const struct kernel_listener spare_listener = {.ready = spare_ready, .death = spare_death};

static void on_spare_expired(uv_timer_t *t)
{
  spare_drop(t->data);
}

static void on_spare_quiet(uv_timer_t *t)
{
  struct spare *s = t->data;
  struct err err = ERR_NONE;
  if (!s->kernel)
    s->kernel = kernel_native_new(s->host, s->spec, &spare_listener, s, &err);
  uv_timer_start(t, on_spare_expired, SPARE_EXPIRE_MS, 0);
}

/* The spare if there is one; in any case the next one is thought of. */
static struct kernel *spare_take(struct spare *s, const struct kernel_listener *listener, void *arg)
{
  struct kernel *k = s->kernel;
  s->kernel = NULL;
  if (++s->starts > 1)
    uv_timer_start(s->timer, on_spare_quiet, SPARE_QUIET_MS, 0);
  if (k)
    kernel_native_hand_over(k, listener, arg);
  return k;
}

static void on_timer_closed(uv_handle_t *h)
{
  free(h);
}

void kernel_spares_end(void)
{
  for (size_t i = 0; i < ARRAY_LEN(spares); i++) {
    if (!spares[i].spec)
      continue;
    spare_drop(&spares[i]);
    uv_close((uv_handle_t *)spares[i].timer, on_timer_closed);
    spares[i] = (struct spare){0};
  }
}

struct kernel *kernel_new(const struct kernel_host *host, const struct kernel_spec *spec,
                          const struct kernel_listener *listener, void *arg, struct err *err)
{
  if (spec->driver == KERNEL_JUPYTER)
    return jupyter_new(host, spec, listener, arg, err);
  struct spare *s = spec->nursery ? spare_of(host, spec) : NULL;
  struct kernel *k = s ? spare_take(s, listener, arg) : NULL;
  return k ? k : kernel_native_new(host, spec, listener, arg, err);
}

static void on_line(void *arg, struct str line)
{
  struct kernel *k = arg;
  if (!k->ended)
    k->listener->line(k->arg, line);
}

void kernel_init(struct kernel *k, const struct kernel_host *host, const struct kernel_spec *spec,
                 const struct kernel_listener *listener, void *arg)
{
  k->host = host;
  k->spec = spec;
  k->listener = listener;
  k->arg = arg;
  k->home = access(KERNEL_HOME, X_OK) == 0 ? KERNEL_HOME : "/";
  k->renewals = host->agent ? host->agent->renewals : 0;
  output_init(&k->output, on_line, k);
  k->output.limit = host->output_max;
}

int kernel_run(struct kernel *k, struct str code, const struct json *env)
{
  return k->driver->run(k, code, env);
}

int kernel_set_env(struct kernel *k, const struct env *env, bool renew)
{
  return k->driver->set_env(k, env, renew);
}

int kernel_cd(struct kernel *k, const char *path)
{
  return k->driver->cd(k, path);
}

void kernel_renew(struct kernel *k)
{
  if (k->driver->renew && k->running)
    k->driver->renew(k);
}

void kernel_interrupt(struct kernel *k)
{
  k->driver->interrupt(k);
}

void kernel_pause(struct kernel *k)
{
  if (k->paused)
    return;
  k->paused = true;
  k->driver->pause(k);
}

void kernel_resume(struct kernel *k)
{
  if (!k->paused)
    return;
  k->paused = false;
  k->driver->resume(k);
}

void kernel_end(struct kernel *k)
{
  k->ended = true;
  k->driver->end(k);
}

void kernel_begin(struct kernel *k)
{
  k->run_id++;
  k->running = true;
  k->heard = false;
  output_begin(&k->output);
}

void kernel_done(struct kernel *k)
{
  output_end(&k->output);
  k->running = false;
  if (!k->ended)
    k->listener->done(k->arg);
}

void kernel_died(struct kernel *k, const char *cause)
{
  log_warn("kernel %s: %s", k->spec->language, cause);
  if (!k->ended)
    k->listener->death(k->arg, cause);
}

/* How often the box's memory limit has killed so far, where the box can see it: cgroup v2, then v1. */
static uint64_t oom_kills(void)
{
  static const char *const files[] = {"/sys/fs/cgroup/memory.events", "/sys/fs/cgroup/memory/memory.oom_control"};
  for (size_t i = 0; i < ARRAY_LEN(files); i++) {
    struct buf cleanup_buf b = BUF_INIT(4096);
    struct str rest, line;
    uint64_t n;
    if (file_read(files[i], &b) < 0)
      continue;
    for (rest = buf_str(&b); rest.n;) {
      str_cut(rest, '\n', &line, &rest);
      if (str_starts(line, STR("oom_kill ")) && str_u64(str_skip(line, 9), &n) == 0)
        return n;
    }
  }
  return 0;
}

void kernel_explain(int status, char *out, size_t size)
{
  static uint64_t seen;
  if (!WIFSIGNALED(status)) {
    snprintf(out, size, "the kernel process exited with status %d", WEXITSTATUS(status));
    return;
  }
  int sig = WTERMSIG(status);
  uint64_t kills = sig == SIGKILL ? oom_kills() : 0;
  const char *name = sigdescr_np(sig);
  bool oom = kills > seen;
  seen = MAX(seen, kills);
  const char *memory = getenv("CLOCHE_MEMORY");
  uint64_t limit = 0;
  bool known = memory && !str_u64(str_of(memory), &limit);
  int n = snprintf(out, size, "the kernel process was killed by signal %d (%s)%s", sig, name ? name : "unknown",
                   oom && !known ? ": the sandbox ran out of memory" : "");
  /* Where the box does not see its control groups, and after a resume, which counts from 0 again, the kernel's own kill
   * and one from inside look alike; the first is the usual one. */
  if (sig == SIGKILL && known && n > 0 && (size_t)n < size)
    snprintf(out + n, size - (size_t)n, ": the sandbox ran out of its %llu MB of memory%s",
             (unsigned long long)limit >> 20, oom ? "" : ", unless something in it sent the signal");
}

void kernel_base_env(const struct kernel_host *host, const struct kernel_spec *spec, char *const *more, struct env *env)
{
  env_set(env, STR("PATH"), STR(AGENT_PATH));
  env_set(env, STR("LANG"), STR("C.UTF-8"));
  if (host->agent)
    agent_envs(host->agent, env);
  env_set(env, STR("HOME"), STR("/root"));
  env_set(env, STR("USER"), STR("root"));
  env_set(env, STR("LOGNAME"), STR("root"));
  env_set(env, STR("CLOCHE_KERNEL"), str_of(spec->language));
  for (size_t i = 0; more && more[i]; i++) {
    struct str name, value;
    if (str_cut(str_of(more[i]), '=', &name, &value))
      env_set(env, name, value);
  }
}

pid_t kernel_spawn(const struct kernel_host *host, const struct kernel_spec *spec, char *const *argv, const char *extra,
                   const int fds[3], char *const *more, struct err *err)
{
  struct env cleanup_env env = {0};
  char *args[80];
  size_t n = 0;
  for (; n < ARRAY_LEN(args) - 2 && argv[n]; n++)
    args[n] = argv[n];
  char cleanup_free *last = extra ? xstrdup(extra) : NULL;
  if (last)
    args[n++] = last;
  args[n] = NULL;
  kernel_base_env(host, spec, more, &env);
  struct spawn s = {
      .cmd = args[0],
      .argv = args,
      .envp = env_array(&env),
      .cwd = access(KERNEL_HOME, X_OK) == 0 ? KERNEL_HOME : "/",
      .fds = {-1, fds[0], fds[1], fds[2]},
      .session = true,
  };
  enum spawn_stage stage = SPAWN_OK;
  pid_t pid = spawn_run(&s, &stage);
  if (pid < 0)
    return err_set(err, pid, "can't start %s: %s (step %d)", args[0], strerror(-pid), (int)stage);
  return pid;
}
