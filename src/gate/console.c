/* SPDX-License-Identifier: Apache-2.0 */
/* console.c - see console.h.
 *
 * The page holds an API key, so nothing but its own files may run in it: scripts and styles come from this origin only,
 * no inline script, no frame of it anywhere. What a box made (HTML of a result) is shown by frame.html, a document of
 * its own whose policy takes its origin away: scripts there reach neither the page nor any address. */
#include "gate/console.h"

#include "wire/file_pack.h"
#include <sys/mman.h>

/* trusted-types 'none': no text ever becomes HTML or a script. style-src-attr: the terminal colours cells by style
 * attributes. frame-src 'self' is frame.html; a frame can't be led elsewhere. */
#define PAGE_POLICY                                                                                                    \
  "default-src 'none'; script-src 'self'; style-src 'self'; style-src-attr 'unsafe-inline'; connect-src 'self'; "      \
  "img-src 'self' data: blob:; media-src blob:; font-src 'self'; frame-src 'self'; manifest-src 'self'; "              \
  "form-action 'none'; base-uri 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; "                  \
  "trusted-types 'none'"
#define FRAME_POLICY                                                                                                   \
  "sandbox allow-scripts; default-src 'none'; script-src 'unsafe-inline' 'unsafe-eval' blob: data:; "                  \
  "style-src 'unsafe-inline' data: blob:; img-src data: blob:; media-src data: blob:; font-src data: blob:; "          \
  "worker-src blob:; form-action 'none'; base-uri 'none'; frame-ancestors 'self'"
#define PLAIN_POLICY "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'; base-uri 'none'"

#define FRAME_NAME   "frame.html"
#define ASSETS       "assets/"

static const char missing_page[] =
    "<!doctype html><html lang=\"en\"><meta charset=\"utf-8\"><title>Cloche</title>"
    "<style>body{font:16px/1.5 system-ui,sans-serif;max-width:40em;margin:4em auto;padding:0 1em}</style>"
    "<h1>Cloche is running</h1><p>This server was built without its web console: npm packages could not be fetched "
    "when it was built. The API and all clients work. Run <code>make build</code> where an npm registry can be reached "
    "and start the server again, or turn this page off with the setting <code>console = off</code>.</p></html>";

static void ignore(struct http_x *x, enum http_end how)
{
}

static const struct http_x_ops console_ops = {.gone = ignore};

void console_take(struct gate *g, int fd)
{
  cleanup_fd int file = fd;
  off_t size = fd >= 0 ? lseek(file, 0, SEEK_END) : 0;
  g->console_on = true;
  if (size <= 0)
    return;
  void *p = mmap(NULL, (size_t)size, PROT_READ, MAP_PRIVATE, file, 0);
  struct file_pack *pack = xcalloc(1, sizeof(*pack));
  if (p != MAP_FAILED && !file_pack_open(str_make(p, (size_t)size), pack)) {
    g->console = pack;
    return;
  }
  log_error("gate: the console's files can't be mapped");
  if (p != MAP_FAILED)
    munmap(p, (size_t)size);
  free(pack);
}

bool console_owns(const struct gate *g, const struct http_head *h)
{
  if (!g->console_on || !(str_is(h->method, "GET") || str_is(h->method, "HEAD")))
    return false;
  return str_is(h->path, "/") || str_is(h->path, "/console") || str_starts(h->path, STR("/console/"));
}

const struct packed_file *console_find(const struct file_pack *p, struct str path)
{
  struct str name = str_starts(path, STR("/console/")) ? str_skip(path, 9) : STR_NONE;
  const struct packed_file *f = name.n ? file_pack_find(p, name) : NULL;
  if (f || str_starts(name, STR(ASSETS)))
    return f;
  return file_pack_find(p, STR("index.html"));
}

static size_t put_common(struct http_header *h, struct str policy)
{
  size_t n = 0;
  h[n++] = (struct http_header){STR("Content-Security-Policy"), policy};
  h[n++] = (struct http_header){STR("X-Content-Type-Options"), STR("nosniff")};
  h[n++] = (struct http_header){STR("Referrer-Policy"), STR("no-referrer")};
  h[n++] = (struct http_header){STR("Cross-Origin-Opener-Policy"), STR("same-origin")};
  h[n++] = (struct http_header){STR("Cross-Origin-Resource-Policy"), STR("same-origin")};
  h[n++] = (struct http_header){STR("Permissions-Policy"),
                                STR("camera=(), microphone=(), geolocation=(), clipboard-read=(self)")};
  return n;
}

static void reply_text(struct http_x *x, int status, const char *type, struct str body)
{
  struct http_header h[10];
  size_t n = put_common(h, STR(PLAIN_POLICY));
  h[n++] = (struct http_header){STR("Content-Type"), str_of(type)};
  h[n++] = (struct http_header){STR("Cache-Control"), STR("no-store")};
  http_reply_with(x, status, h, n, body);
}

static void send_file(struct http_x *x, const struct packed_file *f)
{
  const struct http_head *head = http_x_head(x);
  struct http_header h[12];
  bool frame = str_is(f->name, FRAME_NAME), kept = str_starts(f->name, STR(ASSETS));
  bool gzip = f->gzip.p && http_header_has(head, "accept-encoding", "gzip");
  size_t n = put_common(h, frame ? STR(FRAME_POLICY) : STR(PAGE_POLICY));
  h[n++] =
      (struct http_header){STR("Cache-Control"), kept ? STR("public, max-age=31536000, immutable") : STR("no-cache")};
  h[n++] = (struct http_header){STR("ETag"), f->etag};
  h[n++] = (struct http_header){STR("Vary"), STR("Accept-Encoding")};
  if (http_header_has(head, "if-none-match", "*") ||
      str_search(http_header(head, "if-none-match"), f->etag) >= 0) { /* the same name has the same bytes either way */
    http_reply_with(x, 304, h, n, STR_NONE);
    return;
  }
  h[n++] = (struct http_header){STR("Content-Type"), f->type};
  if (gzip)
    h[n++] = (struct http_header){STR("Content-Encoding"), STR("gzip")};
  http_reply_with(x, 200, h, n, gzip ? f->gzip : f->body);
}

void console_request(struct gate *g, struct http_x *x)
{
  http_x_handle(x, &console_ops, NULL);
  if (!g->console) {
    reply_text(x, 200, "text/html; charset=utf-8", STR(missing_page));
    return;
  }
  const struct packed_file *f = console_find(g->console, http_x_head(x)->path);
  if (f)
    send_file(x, f);
  else
    reply_text(x, 404, "text/plain; charset=utf-8", STR("no such file of the console\n"));
}
