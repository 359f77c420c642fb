/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/remote/picture.h"
#include "cli/remote/remote.h"
#include "cli/remote/sixel.h"

#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <termios.h>

#define FILES_MOST  10000
#define KITTY_CHUNK 4096
#define BASE64      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/="

#define ANSWER_MS   500 /* a terminal says within this time what it can do */
#define WIDTH_MOST  1000

enum protocol { PROTOCOL_NONE, PROTOCOL_KITTY, PROTOCOL_ITERM, PROTOCOL_SIXEL };

static bool is(const char *name, const char *value)
{
  const char *v = getenv(name);
  return v && !strcmp(v, value);
}

/* The numbers of a terminal's answer to "what are you", ESC [ ? 62 ; 4 ; 22 c: 4 is sixels. */
static bool tells_sixels(struct str answer)
{
  struct str part;
  ptrdiff_t at = str_search(answer, STR("\033[?"));
  if (at < 0)
    return false;
  answer = str_skip(answer, (size_t)at + 3);
  while (answer.n) {
    str_cut(answer, ';', &part, &answer);
    if (str_is(part, "4") || str_is(part, "4c"))
      return true;
  }
  return false;
}

/* Asks the terminal itself, whatever standard input is. */
static bool shows_sixels(void)
{
  char answer[256] = "";
  size_t n = 0;
  struct termios before, raw;
  cleanup_fd int fd = open("/dev/tty", O_RDWR | O_CLOEXEC | O_NOCTTY);
  if (fd < 0 || tcgetattr(fd, &before))
    return false;
  raw = before;
  raw.c_lflag &= ~(tcflag_t)(ICANON | ECHO);
  tcsetattr(fd, TCSANOW, &raw);
  struct pollfd p = {.fd = fd, .events = POLLIN};
  bool asked = !fd_write_all(fd, "\033[c", 3);
  while (asked && n < sizeof(answer) && !memchr(answer, 'c', n) && poll(&p, 1, ANSWER_MS) > 0) {
    ssize_t got = read(fd, answer + n, sizeof(answer) - n);
    if (got <= 0)
      break;
    n += (size_t)got;
  }
  tcsetattr(fd, TCSANOW, &before);
  return tells_sixels(str_make(answer, n));
}

/* CLOCHE_PICTURES decides; else what the terminal says of itself. */
static enum protocol terminal_protocol(void)
{
  static const char *const names[] = {"save", "kitty", "iterm", "sixel"};
  static int asked = -1; /* the terminal is asked once */
  for (size_t i = 0; i < ARRAY_LEN(names); i++)
    if (is("CLOCHE_PICTURES", names[i]))
      return (enum protocol)i;
  if (!isatty(1))
    return PROTOCOL_NONE;
  if (is("TERM", "xterm-kitty") || is("TERM", "xterm-ghostty") ||
      (getenv("KITTY_WINDOW_ID") && *getenv("KITTY_WINDOW_ID")))
    return PROTOCOL_KITTY;
  if (is("TERM_PROGRAM", "iTerm.app") || is("LC_TERMINAL", "iTerm2") || is("TERM_PROGRAM", "WezTerm"))
    return PROTOCOL_ITERM;
  if (is("TERM", "dumb") || is("TERM", "linux"))
    return PROTOCOL_NONE;
  if (asked < 0)
    asked = shows_sixels();
  return asked ? PROTOCOL_SIXEL : PROTOCOL_NONE;
}

/* As wide as the terminal, where it tells its size in pixels. */
static int show_sixels(const char *base64)
{
  struct winsize size = {0};
  struct cloche_text *bytes = NULL;
  cleanup_buf struct buf out = BUF_INIT(PRINT_MAX);
  ioctl(1, TIOCGWINSZ, &size);
  if (cloche_decode(base64, &bytes, NULL))
    return -EPROTO;
  unsigned width = size.ws_xpixel > 16 ? MIN((unsigned)size.ws_xpixel, 4096u) : WIDTH_MOST;
  int r = sixel_from_png(str_make(bytes->data, bytes->len), width, &out);
  cloche_free(bytes);
  return r ? r : print_out(&out);
}

/* Only characters of base64 pass, so that nothing ends the sequence early. */
static void only_base64(struct buf *out, const char *text)
{
  while (*text) {
    size_t n = strspn(text, BASE64);
    buf_add(out, text, n);
    text += n;
    text += strcspn(text, BASE64);
  }
}

static int show(enum protocol protocol, const char *base64)
{
  cleanup_buf struct buf data = BUF_INIT(PRINT_MAX), out = BUF_INIT(PRINT_MAX);
  only_base64(&data, base64);
  if (protocol == PROTOCOL_ITERM)
    buf_addf(&out, "\033]1337;File=inline=1:" STR_FMT "\a\n", STR_ARG(buf_str(&data)));
  for (size_t at = 0; protocol == PROTOCOL_KITTY && at < data.n; at += KITTY_CHUNK) {
    struct str piece = str_sub(buf_str(&data), at, KITTY_CHUNK);
    buf_addf(&out, "\033_G%sm=%d;" STR_FMT "\033\\", at ? "" : "f=100,a=T,", at + piece.n < data.n, STR_ARG(piece));
  }
  if (protocol == PROTOCOL_KITTY)
    buf_addc(&out, '\n');
  return print_out(&out);
}

/* The first free of cloche-1.png, cloche-2.png ...; nothing is overwritten. */
static int save(const char *directory, const char *ending, const char *data, size_t len)
{
  for (unsigned i = 1; i <= FILES_MOST; i++) {
    cleanup_free char *path = xasprintf("%s/cloche-%u.%s", directory ? directory : ".", i, ending);
    cleanup_fd int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0666);
    if (fd < 0 && errno == EEXIST)
      continue;
    int r = fd < 0 ? -errno : fd_write_all(fd, data, len);
    if (r)
      return complain("%s: %s", path, strerror(-r));
    fprintf(stderr, "cloche: picture saved as %s\n", directory ? path : path + 2);
    return 0;
  }
  return complain("%s has %d pictures already: --out names another directory", directory ? directory : ".", FILES_MOST);
}

static int save_base64(const char *directory, const char *ending, const char *base64)
{
  struct cloche_text *bytes = NULL;
  if (cloche_decode(base64, &bytes, NULL))
    return complain("a %s that is not base64 was left out", ending);
  int r = save(directory, ending, bytes->data, bytes->len);
  cloche_free(bytes);
  return r;
}

int picture_take(const struct cloche_result *x, const char *directory, bool *had)
{
  enum protocol protocol = directory ? PROTOCOL_NONE : terminal_protocol();
  const char *shown = x->png ? x->png : protocol == PROTOCOL_ITERM ? x->jpeg : NULL;
  *had = x->png || x->jpeg || x->svg || x->pdf;
  if (shown && protocol == PROTOCOL_SIXEL) {
    int r = show_sixels(shown);
    if (r >= 0)
      return r;
    shown = NULL; /* it is no picture that can be shown: kept as it is */
  }
  if (shown && protocol)
    return show(protocol, shown);
  if (x->png)
    return save_base64(directory, "png", x->png);
  if (x->jpeg)
    return save_base64(directory, "jpg", x->jpeg);
  if (x->svg)
    return save(directory, "svg", x->svg, strlen(x->svg));
  return x->pdf ? save_base64(directory, "pdf", x->pdf) : 0;
}
