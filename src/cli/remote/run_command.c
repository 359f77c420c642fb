/* SPDX-License-Identifier: Apache-2.0 */
/* run_command.c - `cloche run`: code in a sandbox of its own, or in one that keeps its state. Output streams as the
 * code writes it. */
#include "cli/remote/commands.h"
#include "cli/remote/picture.h"
#include "cli/remote/remote.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>

#define CODE_MAX    ((size_t)16 << 20)
#define SECONDS     300
#define LIFE_BEYOND 60 /* a sandbox outlives its run by so much, if nobody ends it */

struct run {
  struct remote remote;
  const struct args *args;
  struct cloche_box *box;
  struct cloche_op *interrupt; /* under way, or NULL */
  unsigned interrupts;
  int signal; /* other than SIGINT: ends the run */
  int status;
};

static int read_code(const struct args *args, struct buf *code)
{
  const char *path = args->word_count ? args->words[0] : "-";
  bool given = !strcmp(path, "-");
  int r = given ? fd_read_all(0, code) : file_read(path, code);
  if (r == -ENOBUFS)
    return complain("the code is longer than %zu MiB", CODE_MAX >> 20);
  return r ? complain("%s: %s", given ? "standard input" : path, strerror(-r)) : 0;
}

/* ---- what the code says ---- */

static int on_stdout(const struct cloche_text *text, void *user)
{
  return fd_write_all(1, text->data, text->len);
}

static int on_stderr(const struct cloche_text *text, void *user)
{
  return fd_write_all(2, text->data, text->len);
}

static int on_result(const struct cloche_result *result, void *user)
{
  struct run *run = user;
  cleanup_buf struct buf out = BUF_INIT(PRINT_MAX);
  bool picture;
  int r = picture_take(result, run->args->out, &picture);
  if (r)
    run->status = r;
  const char *text = result->text ? result->text : result->markdown ? result->markdown : result->latex;
  if (picture || !text)
    return 0;
  text_clean(&out, str_of(text), CLEAN_LINES | CLEAN_COLOURS);
  buf_addc(&out, '\n');
  return print_out(&out);
}

static void print_chunks(struct jw *w, const struct cloche_text *chunks, size_t n)
{
  jw_open(w, '[');
  for (size_t i = 0; i < n; i++)
    jw_str(w, str_make(chunks[i].data, chunks[i].len));
  jw_close(w, ']');
}

static int print_json(const struct run *run, const struct cloche_execution *x)
{
  cleanup_buf struct buf out = BUF_INIT(PRINT_MAX);
  struct jw w = JW(&out);
  jw_open(&w, '{');
  jw_key(&w, "sandboxId");
  jw_z(&w, cloche_box_id(run->box));
  jw_key(&w, "results");
  jw_open(&w, '[');
  for (size_t i = 0; i < x->result_count; i++)
    jw_raw(&w, str_of(x->results[i].raw));
  jw_close(&w, ']');
  jw_key(&w, "logs");
  jw_open(&w, '{');
  jw_key(&w, "stdout");
  print_chunks(&w, x->out, x->out_count);
  jw_key(&w, "stderr");
  print_chunks(&w, x->err, x->err_count);
  jw_close(&w, '}');
  jw_key(&w, "error");
  if (x->error) {
    jw_open(&w, '{');
    jw_key(&w, "name");
    jw_z(&w, x->error->name);
    jw_key(&w, "value");
    jw_z(&w, x->error->value);
    jw_key(&w, "traceback");
    jw_z(&w, x->error->traceback);
    jw_close(&w, '}');
  } else {
    jw_null(&w);
  }
  jw_key(&w, "executionCount");
  jw_int(&w, x->execution_count);
  jw_close(&w, '}');
  buf_addc(&out, '\n');
  return print_out(&out);
}

static void print_error(const struct cloche_code_error *e)
{
  cleanup_buf struct buf out = BUF_INIT(PRINT_MAX);
  text_clean(&out, str_of(e->traceback && *e->traceback ? e->traceback : e->value), CLEAN_LINES | CLEAN_COLOURS);
  fprintf(stderr, STR_FMT "\n", STR_ARG(str_trim(buf_str(&out))));
}

/* ---- signals ---- */

/* The first Ctrl-C interrupts the cell, whose sandbox keeps its state; the next one gives up waiting for that. */
static void on_signal(struct remote *r, struct cloche_op *op, int signal, void *user)
{
  struct run *run = user;
  if (signal == SIGWINCH)
    return;
  if (signal != SIGINT)
    run->signal = signal;
  if (signal != SIGINT || !run->box || run->interrupts++ || !(run->interrupt = cloche_op_new(r->client, NULL, NULL))) {
    cloche_op_cancel(op);
    return;
  }
  const char *language = run->args->language;
  if (cloche_interrupt(run->box, CLOCHE_WITH(cloche_interrupt, .language = language), NULL,
                       CLOCHE_WITH(cloche_call, .op = run->interrupt), NULL))
    cloche_op_cancel(op);
}

/* ---- the run ---- */

static int get_box(struct run *run)
{
  struct remote *r = &run->remote;
  const struct args *args = run->args;
  struct cloche_op *op = cloche_op_new(r->client, NULL, NULL);
  const struct cloche_call call = {.size = sizeof(call), .op = op};
  const int life = (int)(args->seconds ? args->seconds : SECONDS) + LIFE_BEYOND;
  struct cloche_box *box = NULL;
  enum cloche_code code =
      args->box
          ? cloche_connect(r->client, args->box, CLOCHE_WITH(cloche_connect, .timeout_s = life), &box, &call, &r->error)
          : cloche_create(r->client, CLOCHE_WITH(cloche_create, .template_id = args->template_id, .timeout_s = life),
                          &box, &call, &r->error);
  code = code ? code : remote_finish(r, op, on_signal, run);
  cloche_op_free(op);
  run->box = box;
  return code == CLOCHE_OK ? 0 : run->interrupts || run->signal ? EXIT_INTERRUPTED : remote_failed(r, args->box);
}

static int run_cell(struct run *run, const char *code)
{
  struct remote *r = &run->remote;
  const bool json = run->args->json;
  const long limit = (long)(run->args->seconds ? run->args->seconds : SECONDS) * 1000;
  struct cloche_execution *cell = NULL;
  struct cloche_op *op = cloche_op_new(r->client, NULL, NULL);
  struct cloche_run options = {.size = sizeof(options), .language = run->args->language, .user = run};
  if (!json) {
    options.on_stdout = on_stdout;
    options.on_stderr = on_stderr;
    options.on_result = on_result;
    options.no_retain = true;
  }
  const struct cloche_call call = {.size = sizeof(call), .op = op, .timeout_ms = limit};
  enum cloche_code result = cloche_run_code(run->box, code, &options, &cell, &call, &r->error);
  result = result ? result : remote_finish(r, op, on_signal, run);
  cloche_op_free(op);
  cloche_op_free(run->interrupt);
  if (result && (run->interrupts || run->signal))
    return EXIT_INTERRUPTED;
  if (result)
    return remote_failed(r, NULL);
  int status = json ? print_json(run, cell) : run->status;
  if (cell->error && !json)
    print_error(cell->error);
  status = run->interrupts ? EXIT_INTERRUPTED : cell->error ? EXIT_FAILED : status;
  cloche_free(cell);
  return status;
}

static void leave_box(struct run *run)
{
  struct remote *r = &run->remote;
  const char *id = cloche_box_id(run->box);
  if (run->args->keep && !run->args->box)
    fprintf(stderr, "cloche: sandbox %s goes on; 'cloche run --box %s' runs more in it\n", id, id);
  else if (!run->args->box && cloche_kill(r->client, id, NULL, NULL, &r->error))
    remote_failed(r, id);
  cloche_box_free(run->box);
}

static int run_run(struct args *args)
{
  struct run run = {.args = args};
  cleanup_buf struct buf code = BUF_INIT(CODE_MAX);
  if (args->box && (args->template_id || args->keep))
    return complain("--box names a sandbox that is there and goes on: --template and --keep have no meaning"),
           EXIT_USAGE;
  int status = read_code(args, &code);
  status = status ? status : remote_open(args, &run.remote);
  if (status)
    return status;
  status = remote_signals(&run.remote);
  status = status ? status : get_box(&run);
  status = status ? status : run_cell(&run, buf_z(&code));
  if (run.box)
    leave_box(&run);
  remote_close(&run.remote);
  return status;
}

static const struct option_spec run_options[] = {
    {"language", 'l', "LANG", "python, javascript, typescript, r, java or bash [python]", OPTION_TEXT,
     offsetof(struct args, language), 0, 0},
    {"box", 0, "ID", "run in this sandbox, which keeps its state", OPTION_TEXT, offsetof(struct args, box), 0, 0},
    {"keep", 0, NULL, "do not end the new sandbox; its ID is told on standard error", OPTION_FLAG,
     offsetof(struct args, keep), 0, 0},
    {"template", 0, "NAME", "what the sandbox is made from [code-interpreter-v1]", OPTION_TEXT,
     offsetof(struct args, template_id), 0, 0},
    {"timeout", 't', "SECONDS", "the code may run so long [300]", OPTION_NUMBER, offsetof(struct args, seconds), 1,
     86400},
    {"out", 0, "DIR", "save pictures there, even where the terminal could show them", OPTION_TEXT,
     offsetof(struct args, out), 0, 0},
};

const struct command_spec run_spec = {
    .name = "run",
    .summary = "run code in a sandbox",
    .usage = "[FILE|-]",
    .text =
        "Runs the code of a file (or of standard input) and passes on what it writes. The value of the last\n"
        "expression is printed. Pictures are shown where the terminal can (kitty, iTerm2, sixels; CLOCHE_PICTURES=\n"
        "kitty, iterm, sixel or save decides), else saved as cloche-1.png and so on. Ctrl-C interrupts the code. Exit "
        "status 1 and a traceback on standard error\n"
        "when the code raised, 130 when it was interrupted.",
    .options = run_options,
    .option_count = ARRAY_LEN(run_options),
    .most_words = 1,
    .run = run_run,
};
