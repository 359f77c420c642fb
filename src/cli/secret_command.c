/* SPDX-License-Identifier: Apache-2.0 */
/* secret_command.c - `cloche secret list|set|get-metadata|rm|check|rotate-key`. A value comes from a file, from
 * standard input or from a prompt without echo, never from an argument, which every process of the machine can read. */
#include "cli/cli.h"
#include "cli/admin_client.h"

#include <stdio.h>
#include <termios.h>
#include <unistd.h>

#define VALUE_MAX 65536
#define ID_WORD   20
#define PAGE      100

static const char help[] =
    "cloche secret - values that requests of sandboxes are given on their way out\n\n"
    "Usage: cloche secret list                        the secrets of a team; values are never shown\n"
    "       cloche secret set NAME [--file FILE] [--meta KEY=VALUE...]\n"
    "                                                 a new secret, or a new version; the value is FILE's, standard\n"
    "                                                 input's, or asked for\n"
    "       cloche secret get-metadata NAME           what is known of one\n"
    "       cloche secret rm NAME                     delete it; sandboxes lose it at once\n"
    "       cloche secret check                       does every value of every team open?\n"
    "       cloche secret rotate-key                  a new master key; all values go over to it, sandboxes notice "
    "nothing\n"
    "       cloche secret rotate-identity-key         another key signs identity tokens\n"
    "       cloche secret token SANDBOX NAME          an identity token of a sandbox, to try who accepts it\n\n"
    "Options: --data DIR   the server's data directory [/var/lib/cloche]\n"
    "         --team ID    another team than the first one\n"
    "         --json       list: print JSON for programs";

static void first_team(struct str packet, void *arg)
{
  char *team = arg;
  if (!team[0])
    wire_copyz(packet, W_TEAM, team, UUID_SIZE);
}

static void begin(struct buf *b, enum wire_type type, const char *team)
{
  wire_begin(b, type, 1, 0);
  wire_putz(b, W_TEAM, team);
}

/* Names are kept in lower case. */
static int lower_name(const char *text, char out[SECRET_NAME_SIZE], struct err *err)
{
  if (str_copyz(str_of(text), out, SECRET_NAME_SIZE))
    return err_set(err, -EINVAL, "the name is longer than %d characters", SECRET_NAME_SIZE - 1);
  for (char *c = out; *c; c++)
    *c = *c >= 'A' && *c <= 'Z' ? (char)(*c + 32) : *c;
  return 0;
}

static int begin_about(struct buf *b, enum wire_type type, const char *team, const char *name, struct err *err)
{
  char lower[SECRET_NAME_SIZE];
  int r = lower_name(name, lower, err);
  begin(b, type, team);
  wire_putz(b, W_REF, lower);
  return r;
}

/* ---- showing ---- */

struct page {
  struct json_rows *json; /* NULL: lines for people */
  uint64_t n, last_us;
  char last[SECRET_ID_SIZE];
};

static void print_row(struct str p, void *arg)
{
  struct page *page = arg;
  char when[CLOCK_TEXT];
  page->n++;
  page->last_us = wire_u64(p, W_CREATED, 0);
  wire_copyz(p, W_ID, page->last, sizeof(page->last));
  if (page->json) {
    json_rows_item(p, page->json);
    return;
  }
  clock_text((int64_t)wire_u64(p, W_UPDATED, 0), when);
  printf("%-24.*s  %7llu  %.19s  %.*s\n", STR_ARG(wire_get(p, W_ID)), (unsigned long long)wire_u64(p, W_VERSION, 0),
         when, STR_ARG(wire_get(p, W_NAME)));
}

static int list(struct line *l, const char *team, bool json, struct err *err)
{
  static const struct json_field fields[] = {{"secretID", W_ID, FIELD_TEXT},
                                             {"name", W_NAME, FIELD_TEXT},
                                             {"version", W_VERSION, FIELD_NUMBER},
                                             {"createdAt", W_CREATED, FIELD_TIME},
                                             {"updatedAt", W_UPDATED, FIELD_TIME}};
  struct json_rows rows = {0};
  struct page page = {.json = json ? &rows : NULL};
  int r = 0;
  if (json)
    json_rows_begin(&rows, fields, ARRAY_LEN(fields));
  else
    printf("%-24s  %7s  %-19s  %s\n", "ID", "VERSION", "UPDATED", "NAME");
  do {
    cleanup_buf struct buf b = BUF_INIT(WIRE_MAX);
    begin(&b, WIRE_SECRET_LIST, team);
    wire_put_u64(&b, W_COUNT, PAGE);
    wire_put_u64(&b, W_FROM, page.last_us);
    wire_putz(&b, W_REF, page.last);
    page.n = 0;
    r = admin_call(l, &b, print_row, &page, err);
  } while (!r && page.n == PAGE);
  return json ? json_rows_end(&rows, r) : r;
}

static int show(struct line *l, const char *team, const char *name, struct err *err)
{
  cleanup_buf struct buf b = BUF_INIT(WIRE_MAX);
  char created[CLOCK_TEXT], updated[CLOCK_TEXT];
  int r = begin_about(&b, WIRE_SECRET_GET, team, name, err);
  r = r ? r : admin_call(l, &b, NULL, NULL, err);
  if (r)
    return r;
  struct str p = buf_str(&b);
  clock_text((int64_t)wire_u64(p, W_CREATED, 0), created);
  clock_text((int64_t)wire_u64(p, W_UPDATED, 0), updated);
  printf("id        %.*s\nname      %.*s\nversion   %llu\ncreated   %s\nupdated   %s\nmetadata  %.*s\n",
         STR_ARG(wire_get(p, W_ID)), STR_ARG(wire_get(p, W_NAME)), (unsigned long long)wire_u64(p, W_VERSION, 0),
         created, updated, STR_ARG(wire_get(p, W_METADATA)));
  return 0;
}

/* ---- a value ---- */

static int read_until_end(int fd, bool one_line, struct buf *out)
{
  for (;;) {
    char c[4096];
    ssize_t k = read(fd, c, one_line ? 1 : sizeof(c));
    if (k < 0 && errno == EINTR)
      continue;
    if (k <= 0 || (one_line && c[0] == '\n')) {
      explicit_bzero(c, sizeof(c));
      return k < 0 ? -errno : 0;
    }
    int r = buf_add(out, c, (size_t)k);
    explicit_bzero(c, sizeof(c));
    if (r)
      return r;
  }
}

static int ask(const char *name, struct buf *out)
{
  struct termios was, quiet;
  if (tcgetattr(0, &was))
    return -errno;
  quiet = was;
  quiet.c_lflag &= ~(tcflag_t)ECHO;
  fprintf(stderr, "Value of %s (not shown): ", name);
  tcsetattr(0, TCSAFLUSH, &quiet);
  int r = read_until_end(0, true, out);
  tcsetattr(0, TCSAFLUSH, &was);
  fputc('\n', stderr);
  return r;
}

static int read_value(const char *name, const char *file, struct buf *out, struct err *err)
{
  int r = buf_reserve(out, VALUE_MAX + 1);
  if (r)
    return err_set(err, r, "no memory for the value");
  r = file ? file_read(file, out) : isatty(0) ? ask(name, out) : read_until_end(0, false, out);
  if (r == -ENOBUFS)
    return err_set(err, r, "the value is longer than %d bytes", VALUE_MAX);
  if (r)
    return err_set(err, r, "%s: %s", file ? file : "standard input", strerrordesc_np(-r));
  if (out->n && out->p[out->n - 1] == '\n') /* that editors and echo add */
    out->n--;
  return out->n ? 0 : err_set(err, -EINVAL, "the value is empty");
}

static int put_metadata(struct buf *b, int argc, char **argv, struct err *err)
{
  cleanup_buf struct buf text = BUF_INIT(WIRE_MAX);
  struct jw w = JW(&text);
  bool any = false;
  jw_open(&w, '{');
  for (int i = 0; i < argc; i++) {
    struct str key, value;
    if (strcmp(argv[i], "--meta") != 0)
      continue;
    if (i + 1 == argc || !str_cut(str_of(argv[i + 1]), '=', &key, &value) || !key.n)
      return err_set(err, -EINVAL, "'--meta' needs KEY=VALUE");
    any = true;
    jw_keys(&w, key);
    jw_str(&w, value);
  }
  jw_close(&w, '}');
  if (any)
    wire_put(b, W_METADATA, buf_str(&text));
  return 0;
}

static int set(struct line *l, const char *team, int argc, char **argv, struct err *err)
{
  char id[SECRET_ID_SIZE] = "sec_", request[UUID_TEXT], name[SECRET_NAME_SIZE];
  const char *file = NULL;
  cleanup_buf struct buf value = BUF_INIT(VALUE_MAX + 1), b = BUF_INIT(WIRE_MAX);
  for (int i = 3; i < argc; i += 2) {
    if (strcmp(argv[i], "--file") != 0 && strcmp(argv[i], "--meta") != 0)
      return err_set(err, -EINVAL,
                     "only --file FILE and --meta KEY=VALUE may follow the name; the value is read from a file or "
                     "standard input, because arguments can be read by everyone on this machine");
    if (i + 1 == argc)
      return err_set(err, -EINVAL, "'%s' needs a word behind it", argv[i]);
    file = strcmp(argv[i], "--file") ? file : argv[i + 1];
  }
  int r = lower_name(argv[2], name, err);
  r = r ? r : begin_about(&b, WIRE_SECRET_GET, team, name, err);
  if (r)
    return r;
  bool there = !admin_call(l, &b, NULL, NULL, err);
  if (!there && err->code != -ENOENT)
    return err->code;
  r = read_value(argv[2], file, &value, err);
  buf_clear(&b);
  if (!r && there) {
    uuid4(request);
    r = begin_about(&b, WIRE_SECRET_CHANGE, team, name, err);
    wire_putz(&b, W_BUILD, request);
  } else if (!r) {
    random_id(id + 4, ID_WORD);
    begin(&b, WIRE_SECRET_CREATE, team);
    wire_putz(&b, W_ID, id);
    wire_putz(&b, W_NAME, name);
  }
  r = r ? r : put_metadata(&b, argc - 3, argv + 3, err);
  wire_put(&b, W_SECRET, buf_str(&value));
  explicit_bzero(value.p, value.cap);
  r = r ? r : admin_call(l, &b, NULL, NULL, err);
  if (!r)
    printf("%.*s version %llu\n", STR_ARG(wire_get(buf_str(&b), W_ID)),
           (unsigned long long)wire_u64(buf_str(&b), W_VERSION, 0));
  if (b.p)
    explicit_bzero(b.p, b.cap);
  return r;
}

/* ---- the master key ---- */

static int check(struct line *l, struct err *err)
{
  cleanup_buf struct buf b = BUF_INIT(WIRE_MAX);
  wire_begin(&b, WIRE_SECRET_CHECK, 1, 0);
  int r = admin_call(l, &b, NULL, NULL, err);
  if (r)
    return r;
  struct str p = buf_str(&b), why = wire_get(p, W_MESSAGE);
  uint64_t bad = wire_u64(p, W_LAST, 0), keys = wire_u64(p, W_KEYS, 0);
  printf("master key  %.*s in %.*s%s\nreadable    %llu\nunreadable  %llu\n",
         STR_ARG(keys ? wire_get(p, W_KEY_ID) : STR("none")), STR_ARG(wire_get(p, W_NAME)),
         keys > 1 ? ", older ones beside it" : "", (unsigned long long)wire_u64(p, W_COUNT, 0),
         (unsigned long long)bad);
  if (why.n)
    return err_set(err, -ENOKEY, STR_FMT, STR_ARG(why));
  return bad ? err_set(err, -EBADMSG,
                       "%llu values do not open: their rows in the database were changed, or are others'",
                       (unsigned long long)bad)
             : 0;
}

static int rotate(struct line *l, struct err *err)
{
  cleanup_buf struct buf b = BUF_INIT(WIRE_MAX);
  wire_begin(&b, WIRE_SECRET_ROTATE, 1, 0);
  int r = admin_call(l, &b, NULL, NULL, err);
  if (!r)
    printf("%llu values are sealed by a new master key; keep a copy of the key file\n",
           (unsigned long long)wire_u64(buf_str(&b), W_COUNT, 0));
  return r;
}

static int print_token(struct line *l, const char *box, const char *name, struct err *err)
{
  cleanup_buf struct buf b = BUF_INIT(WIRE_MAX);
  wire_begin(&b, WIRE_IDENTITY_TOKEN, 1, 0);
  wire_putz(&b, W_ID, box);
  wire_putz(&b, W_NAME, name);
  int r = admin_call(l, &b, NULL, NULL, err);
  if (!r)
    printf("%.*s\n", STR_ARG(wire_get(buf_str(&b), W_TOKEN)));
  return r;
}

static int run(struct line *l, int argc, char **argv, char *team, bool json, struct err *err)
{
  cleanup_buf struct buf b = BUF_INIT(WIRE_MAX);
  const char *verb = argc > 1 ? argv[1] : "";
  if (!strcmp(verb, "check") && argc == 2)
    return check(l, err);
  if (!strcmp(verb, "rotate-key") && argc == 2)
    return rotate(l, err);
  if (!strcmp(verb, "rotate-identity-key") && argc == 2) {
    wire_begin(&b, WIRE_IDENTITY_ROTATE, 1, 0);
    return admin_call(l, &b, NULL, NULL, err);
  }
  if (!strcmp(verb, "token") && argc == 4)
    return print_token(l, argv[2], argv[3], err);
  if (!team[0]) {
    wire_begin(&b, WIRE_TEAM_LIST, 1, 0);
    int r = admin_call(l, &b, first_team, team, err);
    if (r)
      return r;
  }
  if (!strcmp(verb, "list") && argc == 2)
    return list(l, team, json, err);
  if (!strcmp(verb, "set") && argc > 2)
    return set(l, team, argc, argv, err);
  if (!strcmp(verb, "get-metadata") && argc == 3)
    return show(l, team, argv[2], err);
  if (!strcmp(verb, "rm") && argc == 3) {
    int r = begin_about(&b, WIRE_SECRET_DELETE, team, argv[2], err);
    return r ? r : admin_call(l, &b, NULL, NULL, err);
  }
  return err_set(err, -EINVAL,
                 "expected list, set NAME, get-metadata NAME, rm NAME, check, rotate-key, rotate-identity-key or token "
                 "SANDBOX NAME; see cloche secret --help");
}

int secret_main(int argc, char **argv)
{
  struct line l;
  struct err err = ERR_NONE;
  char team[UUID_SIZE] = "";
  if (argc < 2 || !strcmp(argv[1], "--help")) {
    puts(help);
    return argc < 2 ? 2 : 0;
  }
  proc_hide(); /* a value will be in its memory */
  admin_take_team(&argc, argv, team);
  bool json = admin_take_json(&argc, argv);
  int r = admin_open(&l, &argc, argv, &err);
  r = r ? r : run(&l, argc, argv, team, json, &err);
  admin_close(&l);
  return r ? usage_error("%s", err.msg), 1 : 0;
}
