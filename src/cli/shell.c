/* SPDX-License-Identifier: Apache-2.0 */
/* shell.c - `cloche shell`: a terminal in a box, or one command there, for the host's root user.
 *
 * The envd API over a connection the warden made: one stream of the process's events, one connection for what is typed.
 * Typed bytes wait while an earlier piece is under way, and events are read meanwhile, so that neither side can block
 * the other. With a terminal on both ends the box's process gets one, too, of the same size. */
#include "cli/cli.h"
#include "cli/agent_client.h"
#include "cli/shell.h"

#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <sys/signalfd.h>
#include <termios.h>

#define TYPED_MAX  4096
#define EVENT_MAX  ((size_t)4 << 20)
#define LIFE_S     3600 /* of a box made for a shell */
#define LOST       255  /* exit status when there is none to pass on */
#define ARENA_MOST ((size_t)16 << 20)

static const char help[] = "cloche shell - a terminal in a sandbox, or one command there\n\n"
                           "Usage: cloche shell [OPTION...] ID [-- COMMAND [ARG...]]\n"
                           "       cloche shell [OPTION...] --new TEMPLATE [-- COMMAND [ARG...]]\n\n"
                           "Without a command: bash as a login shell. From a terminal the command gets one of the same "
                           "size; else its input, output\n"
                           "and errors are passed on as they are. The exit status is the command's; 255 when it has "
                           "none (a signal ended it, the\n"
                           "sandbox went away). --new makes a sandbox of the template, which ends with the shell.\n\n"
                           "Options: --user NAME      another user than the template's\n"
                           "         --workdir DIR    where to begin\n"
                           "         --data DIR       the server's data directory [/var/lib/cloche]\n"
                           "         --team ID        with --new: another team than the first one";

struct shell {
  struct agent_client in;
  struct exchange events, words; /* of the process; what is said to it */
  const char *user, *workdir;
  char **command; /* NULL: a login shell */
  bool terminal, closed;
  uint64_t pid;
  int status; /* to exit with */
  bool ended;
  bool resized; /* the size is to be told */
  struct termios before;
};

/* ---- the terminal ---- */

static void terminal_raw(struct shell *s)
{
  if (!s->terminal || tcgetattr(0, &s->before))
    return;
  struct termios raw = s->before;
  cfmakeraw(&raw);
  tcsetattr(0, TCSADRAIN, &raw);
}

static void terminal_back(struct shell *s)
{
  if (s->terminal)
    tcsetattr(0, TCSADRAIN, &s->before);
}

static void put_size(struct jw *w)
{
  struct winsize size = {.ws_col = 80, .ws_row = 24};
  ioctl(0, TIOCGWINSZ, &size);
  jw_key(w, "pty");
  jw_open(w, '{');
  jw_key(w, "size");
  jw_open(w, '{');
  jw_key(w, "cols");
  jw_uint(w, size.ws_col);
  jw_key(w, "rows");
  jw_uint(w, size.ws_row);
  jw_close(w, '}');
  jw_close(w, '}');
}

/* ---- requests ---- */

static void put_pair(struct jw *w, const char *name, const char *value)
{
  jw_key(w, name);
  jw_z(w, value);
}

static void put_command(struct shell *s, struct jw *w)
{
  static char *const login[] = {"/bin/bash", "-l", NULL}, *const typed[] = {"/bin/bash", "-i", "-l", NULL};
  char *const *argv = s->command ? s->command : s->terminal ? typed : login;
  put_pair(w, "cmd", argv[0]);
  jw_key(w, "args");
  jw_open(w, '[');
  for (argv++; *argv; argv++)
    jw_z(w, *argv);
  jw_close(w, ']');
  if (s->workdir)
    put_pair(w, "cwd", s->workdir);
}

static int start(struct shell *s, struct err *err)
{
  const char *term = getenv("TERM");
  cleanup_buf struct buf b = BUF_INIT(1 << 20);
  struct jw w = JW(&b);
  jw_open(&w, '{');
  jw_key(&w, "process");
  jw_open(&w, '{');
  put_command(s, &w);
  jw_key(&w, "envs");
  jw_open(&w, '{');
  if (s->terminal) {
    put_pair(&w, "TERM", term && term[0] ? term : "xterm-256color");
    put_pair(&w, "LANG", "C.UTF-8");
  }
  jw_close(&w, '}');
  jw_close(&w, '}');
  if (s->terminal)
    put_size(&w);
  jw_key(&w, "stdin");
  jw_bool(&w, true);
  jw_close(&w, '}');
  return exchange_request(&s->in, &s->events, "/process.Process/Start", buf_str(&b), true, err);
}

/* {"process":{"pid":N}, ... */
static void begin_word(struct shell *s, struct jw *w)
{
  jw_open(w, '{');
  jw_key(w, "process");
  jw_open(w, '{');
  jw_key(w, "pid");
  jw_uint(w, s->pid);
  jw_close(w, '}');
}

static int say(struct shell *s, const char *method, struct buf *b, struct jw *w, struct err *err)
{
  char path[64];
  jw_close(w, '}');
  snprintf(path, sizeof(path), "/process.Process/%s", method);
  return exchange_request(&s->in, &s->words, path, buf_str(b), false, err);
}

static int say_typed(struct shell *s, struct str typed, struct err *err)
{
  cleanup_buf struct buf b = BUF_INIT(1 << 16), code = BUF_INIT(1 << 15);
  struct jw w = JW(&b);
  begin_word(s, &w);
  base64_add(&code, typed.p, typed.n, true);
  jw_key(&w, "input");
  jw_open(&w, '{');
  jw_key(&w, s->terminal ? "pty" : "stdin");
  jw_str(&w, buf_str(&code));
  jw_close(&w, '}');
  return say(s, "SendInput", &b, &w, err);
}

static int say_closed(struct shell *s, struct err *err)
{
  cleanup_buf struct buf b = BUF_INIT(4096);
  struct jw w = JW(&b);
  s->closed = true;
  begin_word(s, &w);
  return s->terminal ? 0 : say(s, "CloseStdin", &b, &w, err);
}

static int say_size(struct shell *s, struct err *err)
{
  cleanup_buf struct buf b = BUF_INIT(4096);
  struct jw w = JW(&b);
  s->resized = false;
  begin_word(s, &w);
  put_size(&w);
  return say(s, "Update", &b, &w, err);
}

/* A disconnect alone would leave the process running. */
static void say_end(struct shell *s)
{
  struct err err = ERR_NONE;
  cleanup_buf struct buf b = BUF_INIT(4096);
  struct jw w = JW(&b);
  if (!s->pid || s->ended)
    return;
  exchange_close(&s->words); /* an earlier word may never be answered */
  exchange_init(&s->words);
  begin_word(s, &w);
  put_pair(&w, "signal", "SIGNAL_SIGKILL");
  if (!say(s, "SendSignal", &b, &w, &err))
    exchange_read(&s->words, &err);
}

/* ---- events ---- */

static void print(int fd, const struct json *data)
{
  cleanup_buf struct buf bytes = BUF_INIT(EVENT_MAX);
  struct str text = json_text(data, STR_NONE);
  if (text.n && !base64_decode(text, &bytes))
    fd_write_all(fd, bytes.p, bytes.n);
}

static int take_event(struct shell *s, struct str text, bool last, struct err *err)
{
  cleanup_arena struct arena a = ARENA_INIT(ARENA_MOST);
  struct json *v = json_read(&a, text, 0, NULL);
  if (last) {
    struct str message = json_text(json_get(json_get(v, "error"), "message"), STR_NONE);
    s->ended |= !message.n;
    return message.n ? err_set(err, -EREMOTEIO, STR_FMT, STR_ARG(str_sub(message, 0, 400))) : 0;
  }
  const struct json *event = json_get(v, "event"), *data = json_get(event, "data"), *end = json_get(event, "end");
  int64_t number = 0;
  if (!json_int(json_get(json_get(event, "start"), "pid"), &number))
    s->pid = (uint64_t)number;
  print(1, json_get(data, "pty"));
  print(1, json_get(data, "stdout"));
  print(2, json_get(data, "stderr"));
  if (end) {
    number = 0;
    json_int(json_get(end, "exitCode"), &number);
    s->status = number < 0 ? LOST : (int)(number & 255);
    s->ended = true;
    if (number < 0)
      fprintf(stderr, "cloche: " STR_FMT "%s\n", STR_ARG(json_text(json_get(end, "status"), STR("ended"))),
              s->terminal ? "\r" : "");
  }
  return 0;
}

static int take_events(struct shell *s, struct err *err)
{
  cleanup_buf struct buf json = BUF_INIT(EVENT_MAX);
  bool last = false;
  int r = exchange_read(&s->events, err);
  if (!r && s->events.response.over && s->events.response.status != 200)
    return err_set(err, -EREMOTEIO, "the sandbox's agent returned status %d: " STR_FMT, s->events.response.status,
                   STR_ARG(str_sub(buf_str(&s->events.body), 0, 200)));
  while (!r && s->events.response.status == 200) {
    int k = exchange_frame(&s->events, &json, &last);
    if (k <= 0)
      return k ? err_set(err, k, "an event of the sandbox is too large") : 0;
    r = take_event(s, buf_str(&json), last, err);
  }
  return r;
}

/* ---- both ways ---- */

static int take_typed(struct shell *s, struct err *err)
{
  char bytes[TYPED_MAX];
  ssize_t n = read(0, bytes, sizeof(bytes));
  if (n < 0 && errno == EINTR)
    return 0;
  return n > 0 ? say_typed(s, str_make(bytes, (size_t)n), err) : say_closed(s, err);
}

/* The box's answer to a word; a program that takes no more input is no failure of ours. */
static int take_answer(struct shell *s, struct err *err)
{
  int r = exchange_read(&s->words, err);
  if (!r && s->words.response.over && s->words.response.status != 200)
    s->closed = true;
  return r;
}

static int take_signal(struct shell *s, int fd)
{
  struct signalfd_siginfo what;
  if (read(fd, &what, sizeof(what)) != sizeof(what))
    return 0;
  s->resized |= what.ssi_signo == SIGWINCH;
  return what.ssi_signo == SIGWINCH ? 0 : (int)what.ssi_signo;
}

static int converse(struct shell *s, int signals, struct err *err)
{
  int r = 0;
  while (!r && !s->ended) {
    bool idle = s->pid && (s->words.fd < 0 || s->words.response.over);
    if (idle && s->resized) {
      r = say_size(s, err);
      continue;
    }
    struct pollfd p[] = {{.fd = s->events.fd, .events = POLLIN},
                         {.fd = idle ? -1 : s->words.fd, .events = POLLIN},
                         {.fd = idle && !s->closed ? 0 : -1, .events = POLLIN},
                         {.fd = signals, .events = POLLIN}};
    if (poll(p, ARRAY_LEN(p), -1) < 0 && errno != EINTR)
      return err_errno(err, "poll");
    int caught = p[3].revents ? take_signal(s, signals) : 0;
    if (caught) {
      say_end(s);
      s->status = 128 + caught;
      return 0;
    }
    if (p[1].revents)
      r = take_answer(s, err);
    if (!r && p[2].revents)
      r = take_typed(s, err);
    if (!r && p[0].revents)
      r = take_events(s, err);
  }
  return s->ended ? 0 : r;
}

static int open_signals(void)
{
  sigset_t set;
  sigemptyset(&set);
  for (size_t i = 0; i < 4; i++)
    sigaddset(&set, (const int[]){SIGWINCH, SIGTERM, SIGHUP, SIGINT}[i]);
  sigprocmask(SIG_BLOCK, &set, NULL);
  return signalfd(-1, &set, SFD_CLOEXEC);
}

static int run(struct shell *s, struct line *l, const char *id, struct err *err)
{
  exchange_init(&s->events);
  exchange_init(&s->words);
  cleanup_fd int signals = open_signals();
  s->status = LOST;
  s->terminal = isatty(0) && isatty(1);
  int r = agent_client_open(&s->in, l, id, s->user, err);
  r = r ? r : start(s, err);
  if (!r) {
    terminal_raw(s);
    r = converse(s, signals, err);
    terminal_back(s);
  }
  exchange_close(&s->events);
  exchange_close(&s->words);
  agent_client_close(&s->in);
  return r;
}

/* ---- a box for it ---- */

int shell_box(struct line *l, const char *team, const char *ref, unsigned seconds, char id[BOX_ID_SIZE],
              struct err *err)
{
  cleanup_buf struct buf b = BUF_INIT(WIRE_MAX);
  char token[AGENT_CLIENT_TOKEN], init[AGENT_CLIENT_TOKEN + 32];
  id[0] = 'i';
  random_id(id + 1, 20);
  int r = agent_client_token(l, id, token, err);
  if (r)
    return r;
  snprintf(init, sizeof(init), "{\"accessToken\":\"%s\"}", token);
  wire_begin(&b, WIRE_BOX_CREATE, 1, 0);
  wire_putz(&b, W_ID, id);
  wire_putz(&b, W_TEAM, team);
  wire_putz(&b, W_REF, ref);
  wire_put_u64(&b, W_TIMEOUT, seconds);
  wire_put_u64(&b, W_FLAGS, BOX_SECURE | BOX_INTERNET);
  wire_putz(&b, W_CONFIG, "{}");
  wire_putz(&b, W_INIT, init);
  return admin_call(l, &b, NULL, NULL, err);
}

static void end_box(struct line *l, const char *id)
{
  struct err err = ERR_NONE;
  cleanup_buf struct buf b = BUF_INIT(WIRE_MAX);
  wire_begin(&b, WIRE_BOX_KILL, 1, 0);
  wire_putz(&b, W_ID, id);
  if (admin_call(l, &b, NULL, NULL, &err))
    usage_error("sandbox %s is left: %s", id, err.msg);
}

/* Cuts the command off behind `--`, so that its words are not taken for ours. */
static void split(struct shell *s, int *argc, char **argv)
{
  for (int i = 1; i < *argc; i++)
    if (!strcmp(argv[i], "--")) {
      s->command = i + 1 < *argc ? argv + i + 1 : NULL;
      *argc = i;
      return;
    }
}

struct shell_options {
  const char *id, *new, *team;
};

static int read_words(struct shell *s, struct shell_options *w, int argc, char **argv, struct err *err)
{
  const struct {
    const char *flag;
    const char **at;
  } options[] = {
      {"--user", &s->user}, {"-u", &s->user}, {"--workdir", &s->workdir}, {"--new", &w->new}, {"--team", &w->team}};
  for (int i = 1; i < argc; i++) {
    size_t k = 0;
    while (k < ARRAY_LEN(options) && strcmp(options[k].flag, argv[i]))
      k++;
    if (k < ARRAY_LEN(options) && i + 1 < argc)
      *options[k].at = argv[++i];
    else if (k < ARRAY_LEN(options) || argv[i][0] == '-' || w->id)
      return err_set(err, -EINVAL, "'%s' is not understood here; see cloche shell --help", argv[i]);
    else
      w->id = argv[i];
  }
  return !w->id == !w->new
             ? err_set(err, -EINVAL, "either a sandbox's id or --new TEMPLATE must be given; cloche ps lists sandboxes")
             : 0;
}

int shell_main(int argc, char **argv)
{
  struct line l;
  struct err err = ERR_NONE;
  struct shell s = {.status = LOST};
  struct shell_options w = {.team = ""};
  char team[UUID_SIZE], id[BOX_ID_SIZE];
  split(&s, &argc, argv);
  if (argc < 2 || !strcmp(argv[1], "--help")) {
    puts(help);
    return argc < 2 ? 2 : 0;
  }
  int r = admin_open(&l, &argc, argv, &err);
  r = r ? r : read_words(&s, &w, argc, argv, &err);
  if (!r && w.new)
    r = tpl_team(&l, w.team, str_of(w.new), team, &err);
  if (!r && w.new)
    r = shell_box(&l, team, w.new, LIFE_S, id, &err);
  bool made = !r && w.new;
  r = r ? r : run(&s, &l, made ? id : w.id, &err);
  if (made)
    end_box(&l, id);
  admin_close(&l);
  if (r)
    usage_error("%s", err.msg);
  return r ? LOST : s.status;
}
