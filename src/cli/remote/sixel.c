/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/remote/sixel.h"

#include <fcntl.h>
#include <linux/seccomp.h>
#include <png.h>
#include <signal.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#define SIDE_MOST  4096
#define ARENA_SIZE ((size_t)256 << 20)
#define TEXT_SIZE  ((size_t)48 << 20)
#define CPU_S      10
#define BAND       6 /* rows of one line of sixels */
#define REDS       6
#define GREENS     7
#define BLUES      6
#define COLOURS    (REDS * GREENS * BLUES)

/* ---- in the child ---- */

/* Memory that was there before the child gave up its rights; nothing is given back. */
static struct {
  char *memory;
  size_t used;
  struct str png;
  size_t read;
  char *text;
  size_t length;
} child;

__attribute__((noreturn)) static void leave(int status)
{
  for (;;)
    syscall(SYS_exit, status);
}

static void *take(size_t n)
{
  n = (n + 15) & ~(size_t)15;
  if (n > ARENA_SIZE - child.used)
    leave(1);
  child.used += n;
  return child.memory + child.used - n;
}

static png_voidp take_for_png(png_structp png, png_alloc_size_t n)
{
  return take(n);
}

static void give_back(png_structp png, png_voidp memory)
{
}

static void on_error(png_structp png, png_const_charp message)
{
  leave(1);
}

static void on_warning(png_structp png, png_const_charp message)
{
}

static void on_read(png_structp png, png_bytep to, size_t n)
{
  if (n > child.png.n - child.read)
    leave(1);
  memcpy(to, child.png.p + child.read, n);
  child.read += n;
}

struct picture {
  unsigned width, height;
  uint8_t *pixels; /* three bytes each */
};

static struct picture decode(void)
{
  struct picture out;
  png_structp png =
      png_create_read_struct_2(PNG_LIBPNG_VER_STRING, NULL, on_error, on_warning, NULL, take_for_png, give_back);
  png_infop info = png ? png_create_info_struct(png) : NULL;
  if (!info)
    leave(1);
  png_set_user_limits(png, SIDE_MOST, SIDE_MOST);
  png_set_read_fn(png, NULL, on_read);
  png_read_info(png, info);
  out.width = png_get_image_width(png, info);
  out.height = png_get_image_height(png, info);
  png_set_expand(png);
  png_set_scale_16(png);
  png_set_gray_to_rgb(png);
  png_set_background(png, &(png_color_16){.red = 255, .green = 255, .blue = 255, .gray = 255},
                     PNG_BACKGROUND_GAMMA_SCREEN, 0, 1);
  png_set_strip_alpha(png);
  png_read_update_info(png, info);
  size_t row = png_get_rowbytes(png, info);
  if (row != (size_t)out.width * 3)
    leave(1);
  out.pixels = take(row * out.height);
  png_bytep *rows = take(sizeof(*rows) * out.height);
  for (unsigned y = 0; y < out.height; y++)
    rows[y] = out.pixels + y * row;
  png_read_image(png, rows);
  return out;
}

/* Each pixel the mean of those that it stands for. */
static struct picture shrink(const struct picture *p, unsigned width)
{
  struct picture out = {.width = width, .height = MAX(p->height * width / p->width, 1u)};
  out.pixels = take((size_t)out.width * out.height * 3);
  for (unsigned y = 0; y < out.height; y++)
    for (unsigned x = 0; x < out.width; x++) {
      unsigned sum[3] = {0}, n = 0;
      unsigned y1 = MIN(MAX((y + 1) * p->height / out.height, y * p->height / out.height + 1), p->height);
      unsigned x1 = MIN(MAX((x + 1) * p->width / out.width, x * p->width / out.width + 1), p->width);
      for (unsigned v = y * p->height / out.height; v < y1; v++)
        for (unsigned u = x * p->width / out.width; u < x1; u++, n++)
          for (unsigned c = 0; c < 3; c++)
            sum[c] += p->pixels[((size_t)v * p->width + u) * 3 + c];
      for (unsigned c = 0; c < 3; c++)
        out.pixels[((size_t)y * out.width + x) * 3 + c] = (uint8_t)(n ? sum[c] / n : 0);
    }
  return out;
}

static void put_char(char c)
{
  if (child.length == TEXT_SIZE)
    leave(1);
  child.text[child.length++] = c;
}

static void put_number(unsigned v)
{
  char digits[12];
  int n = 0;
  do
    digits[n++] = (char)('0' + v % 10);
  while (v /= 10);
  while (n)
    put_char(digits[--n]);
}

/* A level of `levels` for a byte, with an ordered dither so that shades stay told apart. */
static unsigned level(unsigned byte, unsigned levels, unsigned x, unsigned y)
{
  static const unsigned char dither[4][4] = {{0, 8, 2, 10}, {12, 4, 14, 6}, {3, 11, 1, 9}, {15, 7, 13, 5}};
  return MIN((byte * (levels - 1) * 16 + dither[y & 3][x & 3] * 255) / (255 * 16), levels - 1);
}

static uint8_t colour_of(const uint8_t *pixel, unsigned x, unsigned y)
{
  return (uint8_t)((level(pixel[0], REDS, x, y) * GREENS + level(pixel[1], GREENS, x, y)) * BLUES +
                   level(pixel[2], BLUES, x, y));
}

static void put_palette(void)
{
  for (unsigned i = 0; i < COLOURS; i++) {
    const unsigned parts[] = {i / BLUES / GREENS * 100 / (REDS - 1), i / BLUES % GREENS * 100 / (GREENS - 1),
                              i % BLUES * 100 / (BLUES - 1)};
    put_char('#');
    put_number(i);
    put_char(';');
    put_char('2');
    for (size_t k = 0; k < ARRAY_LEN(parts); k++) {
      put_char(';');
      put_number(parts[k]);
    }
  }
}

static void put_run(char c, unsigned n)
{
  if (n > 3) {
    put_char('!');
    put_number(n);
    put_char(c);
    return;
  }
  while (n--)
    put_char(c);
}

/* The pixels of one colour in a band of six rows. */
static void put_colour(const uint8_t *band, unsigned width, unsigned rows, unsigned colour)
{
  char last = 0;
  unsigned run = 0;
  put_char('#');
  put_number(colour);
  for (unsigned x = 0; x < width; x++) {
    unsigned bits = 0;
    for (unsigned y = 0; y < rows; y++)
      bits |= (unsigned)(band[y * width + x] == colour) << y;
    char c = (char)('?' + bits);
    if (c != last && run) {
      put_run(last, run);
      run = 0;
    }
    last = c;
    run++;
  }
  if (last != '?')
    put_run(last, run);
  put_char('$');
}

static void encode(const struct picture *p)
{
  uint8_t *band = take((size_t)p->width * BAND);
  put_char('"');
  put_char('1');
  put_char(';');
  put_char('1');
  put_char(';');
  put_number(p->width);
  put_char(';');
  put_number(p->height);
  put_palette();
  for (unsigned top = 0; top < p->height; top += BAND) {
    bool used[256] = {0};
    unsigned rows = MIN((unsigned)BAND, p->height - top);
    for (unsigned y = 0; y < rows; y++)
      for (unsigned x = 0; x < p->width; x++) {
        uint8_t c = colour_of(p->pixels + ((size_t)(top + y) * p->width + x) * 3, x, y);
        band[y * p->width + x] = c;
        used[c] = true;
      }
    for (unsigned c = 0; c < COLOURS; c++)
      if (used[c])
        put_colour(band, p->width, rows, c);
    put_char('-');
  }
}

__attribute__((noreturn)) static void decode_alone(int to, unsigned width)
{
#ifndef __SANITIZE_ADDRESS__ /* which maps and asks for limits when libpng is left by a jump */
  if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_STRICT))
    leave(2);
#endif
  struct picture p = decode();
  if (width && p.width > width)
    p = shrink(&p, width);
  encode(&p);
  for (size_t at = 0; at < child.length;) {
    ssize_t n = write(to, child.text + at, child.length - at);
    if (n <= 0)
      leave(1);
    at += (size_t)n;
  }
  leave(0);
}

/* ---- here ---- */

static void *reserve(size_t n)
{
  void *p = mmap(NULL, n, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  return p == MAP_FAILED ? NULL : p;
}

bool sixel_text_ok(struct str text)
{
  for (size_t i = 0; i < text.n; i++)
    if (text.p[i] < 0x20 || text.p[i] > 0x7e)
      return false;
  return text.n > 0;
}

static int collect(int fd, pid_t pid, struct buf *text)
{
  int how = 0, r = fd_read_all(fd, text);
  if (r)
    kill(pid, SIGKILL);
  while (waitpid(pid, &how, 0) < 0 && errno == EINTR)
    ;
  return r ? r : WIFEXITED(how) && !WEXITSTATUS(how) && sixel_text_ok(buf_str(text)) ? 0 : -EPROTO;
}

int sixel_from_png(struct str png, unsigned width, struct buf *out)
{
  int ends[2];
  cleanup_buf struct buf text = BUF_INIT(TEXT_SIZE);
  if (pipe2(ends, O_CLOEXEC))
    return -errno;
  child.memory = reserve(ARENA_SIZE);
  child.text = reserve(TEXT_SIZE);
  child.png = png;
  child.used = child.read = child.length = 0;
  pid_t pid = child.memory && child.text ? fork() : -1;
  if (pid == 0) {
    setrlimit(RLIMIT_CPU, &(struct rlimit){CPU_S, CPU_S});
    decode_alone(ends[1], width);
  }
  close(ends[1]);
  int r = pid < 0 ? -ENOMEM : collect(ends[0], pid, &text);
  close(ends[0]);
  if (child.memory)
    munmap(child.memory, ARENA_SIZE);
  if (child.text)
    munmap(child.text, TEXT_SIZE);
  if (!r)
    r = buf_addz(out, "\033P0;1q") || buf_adds(out, buf_str(&text)) || buf_addz(out, "\033\\\n") ? -ENOBUFS : 0;
  return r;
}
