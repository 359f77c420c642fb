/* SPDX-License-Identifier: Apache-2.0 */
/* Whatever a kernel sends, each line a client gets is one JSON object in ASCII.
 *
 * The real driver reads the input from its socket, the last part of it from a pipe, in pieces whose size the first byte
 * chooses. Every line it tells is read back by the strict JSON reader. */
#include "agent/interpreter/kernel.h"
#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

static uv_loop_t loop;
static struct kernel_host host = {.loop = &loop};
static char *none[] = {NULL};
static const struct kernel_spec spec = {
    .language = "fuzz", .aliases = none, .argv = none, .requires = none, .needs = ""};
static struct kernel *kernel;

static void check(bool fine)
{
  if (!fine)
    abort();
}

static void start_run(void *arg)
{
  (void)arg;
  if (!kernel->running && kernel->run_id < 5)
    kernel_run(kernel, STR("x"), NULL);
}

static void on_moved(void *arg, bool ok, const char *reason)
{
  (void)arg, (void)ok;
  check(utf8_valid(str_of(reason)));
}

static void on_line(void *arg, struct str line)
{
  struct arena cleanup_arena a = ARENA_INIT((size_t)64 << 20);
  struct json_error why;
  (void)arg;
  check(line.n > 2 && line.p[line.n - 1] == '\n');
  for (size_t i = 0; i + 1 < line.n; i++)
    check((unsigned char)line.p[i] >= 0x20 && (unsigned char)line.p[i] < 0x80);
  struct json *v = json_read(&a, str_sub(line, 0, line.n - 1), 0, &why);
  /* Deeper than the reader goes is fine; anything else it dislikes is not. */
  check(json_is(v, JSON_OBJECT) || (!v && line.n > 2 * JSON_MAX_DEPTH));
  if (!v)
    return;
  struct str type = json_text(json_get(v, "type"), STR(""));
  check(type.n > 0);
  if (str_is(type, "error"))
    check(json_is(json_get(v, "name"), JSON_STRING) && json_is(json_get(v, "value"), JSON_STRING) &&
          json_is(json_get(v, "traceback"), JSON_STRING));
  if (str_is(type, "result"))
    check(json_is(json_get(v, "extra"), JSON_OBJECT) && json_is(json_get(v, "is_main_result"), JSON_BOOL));
}

static void on_death(void *arg, const char *cause)
{
  (void)arg, (void)cause;
}

static const struct kernel_listener listener = {
    .ready = start_run, .moved = on_moved, .line = on_line, .done = start_run, .death = on_death};

static void feed(int fd, const uint8_t *p, size_t n, size_t step)
{
  for (size_t i = 0; i < n; i += step) {
    if (write(fd, p + i, n - i < step ? n - i : step) < 0)
      break;
    uv_run(&loop, UV_RUN_NOWAIT);
  }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
  static bool begun;
  int pair[2], out[2], err[2];
  if (!begun) {
    uv_loop_init(&loop);
    setenv("CLOCHE_LOG_BYTES", "0", 1);
    log_level_set(LOG_ERROR);
    begun = true;
  }
  if (size < 2 || socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair) != 0 ||
      pipe2(out, O_CLOEXEC | O_NONBLOCK) != 0 || pipe2(err, O_CLOEXEC | O_NONBLOCK) != 0)
    return 0;
  size_t step = (size_t)data[0] * 16 + 1, pipe_part = (size_t)(data[1] & 0x0f) * (size - 2) / 64;
  int fds[3] = {pair[0], out[0], err[0]};
  kernel = kernel_native_adopt(&host, &spec, &listener, NULL, fds, 1);
  kernel->output.coalesce = data[1] & 0x10;
  start_run(NULL);
  feed(out[1], data + size - pipe_part, pipe_part, step);
  feed(pair[1], data + 2, size - 2 - pipe_part, step);
  feed(err[1], data + size - pipe_part, pipe_part, step);
  kernel_end(kernel);
  uv_run(&loop, UV_RUN_NOWAIT);
  uv_run(&loop, UV_RUN_NOWAIT);
  close(pair[1]);
  close(out[1]);
  close(err[1]);
  return 0;
}
