/* SPDX-License-Identifier: Apache-2.0 */
/* jupyter.c - the driver of kernels that speak Jupyter's messaging over ZeroMQ.
 *
 * For every kernelspec a template installs. A run is up to four requests, one after the other: the sandbox's variables
 * if they changed, the run's own variables, the cell, and putting the variables back; all but the cell are silent. A
 * request is over when both its reply and its idle status came (two seconds of grace for the second of them, since some
 * kernels never send it). Ready means that a reply came on shell and a status on iopub for the same request, which
 * proves the subscription. Late messages of earlier requests are dropped by their parent's id. */
#include "agent/interpreter/jupyter_channel.h"
#include "agent/interpreter/jupyter_message.h"
#include "agent/interpreter/jupyter_lang.h"
#include "agent/interpreter/kernel.h"
#include "agent/interpreter/json_token.h"
#include "agent/reap.h"
#include <arpa/inet.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#define TICK_MS      50   /* between two tries to connect */
#define ASK_TICKS    6    /* between two kernel_info_requests */
#define HALF_DONE_MS 2000 /* wait for the second sign of the end */
#define CONTENT_MAX  ((size_t)512 << 20)

enum { SHELL, IOPUB, STDIN, CONTROL, HEARTBEAT, PORTS };
#define CHANNELS 4 /* the heartbeat is not used: the process is watched */

enum step { STEP_START, STEP_NONE, STEP_CD, STEP_ENV, STEP_PRE, STEP_CELL, STEP_POST };

struct jupyter {
  struct kernel k;
  struct jupyter_session session;
  struct channel channels[CHANNELS];
  uint16_t ports[PORTS];
  char file[64]; /* the connection file */
  pid_t pid;
  uv_timer_t timer;
  enum kernel_lang kernel_lang;
  enum step step;
  char request[JUPYTER_ID]; /* the one that is on */
  bool idle, replied;
  bool failed;  /* a silent request reported an error */
  bool leaving; /* the last cell asked the kernel to exit */
  unsigned ticks;
  bool exited, dead;
  int status;
  struct buf env; /* waits to be set before the next cell */
  struct buf pre, cell, post;
};

static void step_next(struct jupyter *j);

/* ---- requests ---- */

static int request_send(struct jupyter *j, int channel, const char *type, struct str content, char id[JUPYTER_ID])
{
  struct arena cleanup_arena a = ARENA_INIT(64 << 10);
  struct str frames[JUPYTER_FRAMES];
  int rc = jupyter_message_write(&j->session, &a, type, content, frames, id);
  return rc < 0 ? rc : channel_send(&j->channels[channel], frames, JUPYTER_FRAMES);
}

static int execute(struct jupyter *j, struct str code, bool silent)
{
  struct buf cleanup_buf b = BUF_INIT(CONTENT_MAX);
  buf_addz(&b, "{\"code\":");
  json_put_str(&b, code, true);
  buf_addf(&b,
           ",\"silent\":%s,\"store_history\":%s,\"user_expressions\":{},\"allow_stdin\":false,\"stop_on_error\":false}",
           silent ? "true" : "false", silent ? "false" : "true");
  j->idle = j->replied = j->failed = false;
  return buf_failed(&b) ? buf_failed(&b) : request_send(j, SHELL, "execute_request", buf_str(&b), j->request);
}

/* Names of this run's variables go back to what the process had from the start, or away. */
static void put_back(struct jupyter *j, const struct env *base, struct str name)
{
  char z[256];
  const char *old = str_copyz(name, z, sizeof(z)) == 0 ? env_get(base, z) : NULL;
  if (old)
    lang_set(j->kernel_lang, &j->post, name, str_of(old));
  else
    lang_unset(j->kernel_lang, &j->post, name);
}

static int jupyter_run(struct kernel *k, struct str code, const struct json *env)
{
  struct jupyter *j = (struct jupyter *)k;
  struct env cleanup_env base = {0};
  kernel_begin(k);
  buf_clear(&j->pre);
  buf_clear(&j->post);
  buf_clear(&j->cell);
  if (env && env->kids)
    kernel_base_env(k->host, k->spec, k->spec->env, &base);
  for (const struct json *v = env ? env->kids : NULL; v; v = v->next) {
    if (!json_is(v, JSON_STRING))
      continue;
    lang_set(j->kernel_lang, &j->pre, v->key, v->text);
    put_back(j, &base, v->key);
  }
  if (buf_adds(&j->cell, code) < 0) {
    k->running = k->output.live = false;
    return -ENOBUFS;
  }
  if (!j->leaving) /* else its end comes at once, and the context gives the run to the next process */
    step_next(j);
  return 0;
}

/* Its random numbers are the user's own affair: the protocol has no message to renew them. */
static int jupyter_set_env(struct kernel *k, const struct env *env, bool renew UNUSED)
{
  struct jupyter *j = (struct jupyter *)k;
  buf_clear(&j->env);
  for (size_t i = 0; i < env->n; i++) {
    struct str name, value;
    if (env->p[i] && str_cut(str_of(env->p[i]), '=', &name, &value))
      lang_set(j->kernel_lang, &j->env, name, value);
  }
  return buf_failed(&j->env);
}

static int jupyter_cd(struct kernel *k, const char *path)
{
  struct jupyter *j = (struct jupyter *)k;
  struct buf cleanup_buf b = BUF_INIT(64 << 10);
  if (lang_cd(j->kernel_lang, &b, path) < 0) {
    k->listener->moved(k->arg, false, "this kernel's language has no known way to change its directory");
    return 0;
  }
  j->step = STEP_CD;
  return execute(j, buf_str(&b), true);
}

static void jupyter_signal(struct jupyter *j, int sig)
{
  if (j->pid > 1 && !j->exited && kill(-j->pid, sig) != 0 && errno == ESRCH)
    kill(j->pid, sig);
}

static void jupyter_interrupt(struct kernel *k)
{
  struct jupyter *j = (struct jupyter *)k;
  char id[JUPYTER_ID];
  if (k->spec->interrupt_message)
    request_send(j, CONTROL, "interrupt_request", STR("{}"), id);
  else
    jupyter_signal(j, SIGINT);
}

/* ---- steps ---- */

/* Goes on with the run: each part that has something to say is sent, the last one ends it. */
static void step_next(struct jupyter *j)
{
  struct {
    enum step step;
    struct buf *code;
  } order[] = {{STEP_ENV, &j->env}, {STEP_PRE, &j->pre}, {STEP_CELL, &j->cell}, {STEP_POST, &j->post}};
  for (size_t i = 0; i < ARRAY_LEN(order); i++) {
    bool cell = order[i].step == STEP_CELL;
    if (order[i].step <= j->step || (!cell && !order[i].code->n))
      continue;
    j->step = order[i].step;
    j->k.heard |= cell; /* its first sign of life may be lost with the process, so sending it counts */
    int rc = execute(j, buf_str(order[i].code), !cell);
    if (order[i].step == STEP_ENV)
      buf_clear(order[i].code);
    if (rc == 0)
      return;
    output_fault(&j->k.output, "WebSocketError", "Failed to send execution request", "");
    break;
  }
  j->step = STEP_NONE;
  if (j->leaving)
    jupyter_signal(j, SIGKILL);
  kernel_done(&j->k);
}

static void step_over(struct jupyter *j)
{
  uv_timer_stop(&j->timer);
  if (j->step == STEP_CD) {
    j->step = STEP_NONE;
    j->k.listener->moved(j->k.arg, !j->failed, j->failed ? "the kernel can't go there" : "");
    return;
  }
  if (j->failed && j->step != STEP_CELL)
    log_warn("kernel %s: a silent request failed", j->k.spec->language);
  if (j->step == STEP_CELL)
    output_end(&j->k.output);
  step_next(j);
}

static void on_half_done(uv_timer_t *t)
{
  struct jupyter *j = t->data;
  if (!j->k.ended && (j->idle || j->replied))
    step_over(j);
}

static void step_sign(struct jupyter *j)
{
  if (j->idle && j->replied)
    step_over(j);
  else
    uv_timer_start(&j->timer, on_half_done, HALF_DONE_MS, 0);
}

/* ---- messages ---- */

static bool content_is(struct str content, const char *member, const char *text)
{
  struct str body;
  return token_body(jupyter_member(content, member), &body) && token_is(body, text);
}

static bool is(const struct jupyter_message *m, const char *type)
{
  return token_is(m->type, type);
}

static int64_t stamp_of(const struct jupyter_message *m)
{
  int64_t us;
  return clock_parse(m->date, &us) == 0 ? us : clock_wall_us();
}

static void on_stream(struct jupyter *j, const struct jupyter_message *m)
{
  struct str body;
  int which = content_is(m->content, "name", "stderr") ? OUTPUT_STDERR : OUTPUT_STDOUT;
  if (token_body(jupyter_member(m->content, "text"), &body))
    output_stream(&j->k.output, which, body, stamp_of(m));
}

static void on_error(struct jupyter *j, struct str content)
{
  output_error(&j->k.output, jupyter_member(content, "ename"), jupyter_member(content, "evalue"),
               jupyter_member(content, "traceback"));
}

/* Output of the user's cell. */
static void cell_message(struct jupyter *j, const struct jupyter_message *m)
{
  int64_t n;
  if (is(m, "stream"))
    on_stream(j, m);
  else if (is(m, "display_data"))
    output_display(&j->k.output, false, jupyter_member(m->content, "data"));
  else if (is(m, "execute_result"))
    output_display(&j->k.output, true, jupyter_member(m->content, "data"));
  else if (is(m, "error"))
    on_error(j, m->content);
  else if (is(m, "execute_input") && token_int(jupyter_member(m->content, "execution_count"), &n) == 0)
    output_count(&j->k.output, n);
}

static void on_reply(struct jupyter *j, const struct jupyter_message *m)
{
  bool error = content_is(m->content, "status", "error");
  bool aborted = content_is(m->content, "status", "aborted") || content_is(m->content, "status", "abort");
  j->replied = true;
  j->failed = error || aborted;
  j->leaving |= j->step == STEP_CELL && str_search(jupyter_member(m->content, "payload"), STR("\"ask_exit\"")) >= 0;
  if (j->step == STEP_CELL && error)
    on_error(j, m->content);
  else if (j->step == STEP_CELL && aborted)
    output_fault(&j->k.output, "ExecutionAborted", "Execution was aborted", "");
  step_sign(j);
}

static bool take(struct jupyter *j, const struct str *frames, size_t n, struct jupyter_message *m)
{
  if (j->k.ended || jupyter_message_read(&j->session, frames, n, m) < 0)
    return false;
  return token_is(m->parent, j->request);
}

static void start_sign(struct jupyter *j)
{
  if (!j->idle || !j->replied)
    return;
  uv_timer_stop(&j->timer);
  j->step = STEP_NONE;
  j->k.listener->ready(j->k.arg);
}

static void on_shell(void *arg, const struct str *frames, size_t n)
{
  struct jupyter *j = arg;
  struct jupyter_message m;
  if (!take(j, frames, n, &m))
    return;
  if (j->step == STEP_START && is(&m, "kernel_info_reply")) {
    j->replied = true;
    start_sign(j);
  } else if (is(&m, "execute_reply") && j->step > STEP_NONE) {
    on_reply(j, &m);
  }
}

static void on_iopub(void *arg, const struct str *frames, size_t n)
{
  struct jupyter *j = arg;
  struct jupyter_message m;
  if (!take(j, frames, n, &m))
    return;
  if (j->step == STEP_START) {
    j->idle |= is(&m, "status");
    start_sign(j);
  } else if (is(&m, "status") && j->step > STEP_NONE) {
    if (!content_is(m.content, "execution_state", "idle"))
      return;
    j->idle = true;
    step_sign(j);
  } else if (j->step == STEP_CELL) {
    cell_message(j, &m);
  }
}

/* Nobody can type: every question is answered with nothing. */
static void on_stdin(void *arg, const struct str *frames, size_t n)
{
  struct jupyter *j = arg;
  struct jupyter_message m;
  char id[JUPYTER_ID];
  if (!j->k.ended && jupyter_message_read(&j->session, frames, n, &m) == 0 && is(&m, "input_request"))
    request_send(j, STDIN, "input_reply", STR("{\"status\":\"ok\",\"value\":\"\"}"), id);
}

static void on_control(void *arg, const struct str *frames, size_t n)
{
  (void)arg, (void)frames, (void)n;
}

/* ---- life ---- */

static void jupyter_gone(struct jupyter *j, const char *why)
{
  char cause[160];
  if (j->dead || j->k.ended || j->k.paused)
    return;
  j->dead = true;
  uv_timer_stop(&j->timer);
  if (j->exited)
    kernel_explain(j->status, cause, sizeof(cause));
  else
    snprintf(cause, sizeof(cause), "%s", why);
  kernel_died(&j->k, cause);
}

/* What the kernel still said is read before its death is reported. */
static void jupyter_last_words(struct jupyter *j)
{
  for (int i = 0; i < CHANNELS; i++)
    while (!j->k.ended && channel_read(&j->channels[i]))
      ;
  jupyter_gone(j, "");
}

static void on_exit_status(pid_t pid, int status, void *arg)
{
  struct jupyter *j = arg;
  (void)pid;
  j->exited = true;
  j->status = status;
  jupyter_last_words(j);
}

static void on_tick(uv_timer_t *t)
{
  struct jupyter *j = t->data;
  if (j->k.ended || j->step != STEP_START)
    return;
  if (j->ticks++ * TICK_MS > KERNEL_START_MS) {
    jupyter_gone(j, "the kernel was not ready in time");
    return;
  }
  bool open = true;
  for (int i = 0; i < CHANNELS; i++) {
    channel_connect(&j->channels[i]);
    open &= channel_open(&j->channels[i]);
  }
  if (open && j->ticks % ASK_TICKS == 0) {
    j->idle = j->replied = false;
    request_send(j, SHELL, "kernel_info_request", STR("{}"), j->request);
  }
}

/* A PUB socket drops what its reader does not take, so a slow client is no reason to stop reading: lines gather behind
 * it instead. Only the news of the kernel's death waits. */
static void jupyter_pause(struct kernel *k)
{
  (void)k;
}

static void jupyter_resume(struct kernel *k)
{
  struct jupyter *j = (struct jupyter *)k;
  if (j->exited)
    jupyter_last_words(j);
}

static void on_closed(uv_handle_t *h)
{
  struct jupyter *j = h->data;
  for (int i = 0; i < CHANNELS; i++)
    channel_free(&j->channels[i]);
  output_free(&j->k.output);
  buf_free(&j->env);
  buf_free(&j->pre);
  buf_free(&j->cell);
  buf_free(&j->post);
  free(j);
}

static void jupyter_end(struct kernel *k)
{
  struct jupyter *j = (struct jupyter *)k;
  jupyter_signal(j, SIGKILL);
  if (j->pid > 0 && !j->exited)
    reap_forget(j->pid);
  unlink(j->file);
  uv_close((uv_handle_t *)&j->timer, on_closed);
}

static const struct kernel_driver jupyter_driver = {
    .run = jupyter_run,
    .set_env = jupyter_set_env,
    .cd = jupyter_cd,
    .interrupt = jupyter_interrupt,
    .pause = jupyter_pause,
    .resume = jupyter_resume,
    .end = jupyter_end,
};

/* ---- start ---- */

/* Five free ports: all are held before the first is let go, so they differ. */
static int ports_pick(uint16_t ports[PORTS], struct err *err)
{
  int fds[PORTS] = {-1, -1, -1, -1, -1}, rc = 0;
  for (int i = 0; i < PORTS && rc == 0; i++) {
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof(at);
    fds[i] = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fds[i] < 0 || bind(fds[i], (struct sockaddr *)&at, len) != 0 ||
        getsockname(fds[i], (struct sockaddr *)&at, &len) != 0)
      rc = err_errno(err, "no free port for a kernel");
    ports[i] = ntohs(at.sin_port);
  }
  for (int i = 0; i < PORTS; i++)
    cleanup_fd_p(&fds[i]);
  return rc;
}

static int file_make(struct jupyter *j, struct err *err)
{
  struct buf cleanup_buf b = BUF_INIT(4096);
  buf_addf(
      &b,
      "{\"shell_port\":%u,\"iopub_port\":%u,\"stdin_port\":%u,\"control_port\":%u,\"hb_port\":%u,\"ip\":\"127.0.0.1\","
      "\"key\":\"%s\",\"transport\":\"tcp\",\"signature_scheme\":\"hmac-sha256\",\"kernel_name\":",
      j->ports[SHELL], j->ports[IOPUB], j->ports[STDIN], j->ports[CONTROL], j->ports[HEARTBEAT], j->session.key);
  json_put_str(&b, str_of(j->k.spec->language), true);
  buf_addz(&b, "}\n");
  const char *dir = access("/run", W_OK) == 0 ? "/run" : "/tmp";
  snprintf(j->file, sizeof(j->file), "%s/kernel-%s.json", dir, j->session.id);
  int cleanup_fd fd = open(j->file, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
  if (fd < 0)
    return err_errno(err, "can't make %s", j->file);
  return fd_write_all(fd, b.p, b.n) < 0 ? err_errno(err, "can't write %s", j->file) : 0;
}

static int spawn(struct jupyter *j, struct err *err)
{
  char *argv[80];
  const struct kernel_spec *spec = j->k.spec;
  struct arena cleanup_arena a = ARENA_INIT(64 << 10);
  size_t n = 0;
  for (; n < ARRAY_LEN(argv) - 1 && spec->argv[n]; n++)
    argv[n] = strcmp(spec->argv[n], "{connection_file}") == 0 ? j->file : spec->argv[n];
  argv[n] = NULL;
  char *more[80];
  size_t m = 0;
  for (; m < ARRAY_LEN(more) - 2 && spec->env && spec->env[m]; m++)
    more[m] = spec->env[m];
  more[m] = arena_fmt(&a, "JPY_PARENT_PID=%d", (int)getpid());
  more[m + 1] = NULL;
  int fds[3] = {-1, STDERR_FILENO, -1};
  j->pid = kernel_spawn(j->k.host, spec, argv, NULL, fds, more, err);
  if (j->pid < 0)
    return j->pid;
  reap_watch(j->pid, on_exit_status, j);
  return 0;
}

static enum kernel_lang words_of_spec(const struct kernel_spec *spec)
{
  enum kernel_lang w = lang_of(spec->language);
  for (size_t i = 0; w == LANG_NONE && spec->aliases[i]; i++)
    w = lang_of(spec->aliases[i]);
  return w;
}

struct kernel *jupyter_new(const struct kernel_host *host, const struct kernel_spec *spec,
                           const struct kernel_listener *listener, void *arg, struct err *err)
{
  static void (*const messages[CHANNELS])(void *, const struct str *, size_t) = {on_shell, on_iopub, on_stdin,
                                                                                 on_control};
  struct jupyter *j = xcalloc(1, sizeof(*j));
  kernel_init(&j->k, host, spec, listener, arg);
  j->k.driver = &jupyter_driver;
  j->kernel_lang = words_of_spec(spec);
  jupyter_session_init(&j->session);
  struct buf *bufs[] = {&j->env, &j->pre, &j->cell, &j->post};
  for (size_t i = 0; i < ARRAY_LEN(bufs); i++)
    buf_init(bufs[i], CONTENT_MAX);
  uv_timer_init(host->loop, &j->timer);
  j->timer.data = j;
  int rc = ports_pick(j->ports, err);
  for (int i = 0; i < CHANNELS; i++)
    channel_init(&j->channels[i], host->loop, j->ports[i], i == IOPUB, j->session.id, messages[i], j);
  if (rc < 0 || file_make(j, err) < 0 || spawn(j, err) < 0) {
    kernel_end(&j->k);
    return NULL;
  }
  uv_timer_start(&j->timer, on_tick, TICK_MS, TICK_MS);
  return &j->k;
}
