/* SPDX-License-Identifier: Apache-2.0 */
/* config_source.c - where settings come from: files and their drop-ins, the environment, flags; and what follows from
 * several of them together. */
#include "cli/config.h"

#include "cli/config_table.h"
#include "jail/checkpoint/checkpoint.h"
#include "wire/machine.h"
#include "wire/node_record.h"
#include <arpa/inet.h>
#include <dirent.h>
#include <stdio.h>

/* ---- mistakes ---- */

/* One reading of all sources. Where the caller wants all mistakes, each is told and reading goes on. */
struct reading {
  struct config *c;
  config_mistake_fn mistake;
  void *arg;
  size_t mistakes;
  struct err *err; /* of the first one */
};

/* What a step returned: 0 to go on. */
static int look_at(struct reading *r, int result)
{
  if (result >= 0 || !r->mistake)
    return result;
  r->mistake(r->err->msg, r->arg);
  r->mistakes++;
  *r->err = ERR_NONE;
  return 0;
}

/* ---- files ---- */

/* What stands behind '=': up to a comment, which begins with '#' after a blank; in double quotes anything but those. */
static int value_of(struct str text, struct str *value)
{
  struct str after = STR_NONE;
  if (text.n && text.p[0] == '"') {
    if (!str_cut(str_skip(text, 1), '"', value, &after))
      return -EINVAL;
    after = str_trim(after);
    return after.n && after.p[0] != '#' ? -EINVAL : 0;
  }
  size_t n = 0;
  while (n < text.n && !(text.p[n] == '#' && (n == 0 || text.p[n - 1] == ' ' || text.p[n - 1] == '\t')))
    n++;
  *value = str_trim(str_sub(text, 0, n));
  return 0;
}

static bool printable(struct str text)
{
  for (size_t i = 0; i < text.n; i++)
    if ((unsigned char)text.p[i] < ' ' || text.p[i] == 0x7f)
      return false;
  return true;
}

/* `from` is "file:line". */
static int take_line(struct reading *r, struct str line, const char *from)
{
  char text[DATA_DIR_SIZE];
  struct str name, value;
  if (!str_cut(line, '=', &name, &value))
    return err_set(r->err, -EINVAL, "%s: expected 'name = value', not '" STR_FMT "'", from,
                   STR_ARG(str_sub(line, 0, 60)));
  name = str_trim(name);
  const struct setting *s = setting_find(name);
  if (!s)
    return setting_unknown(from, name, r->err);
  if (value_of(str_trim(value), &value))
    return err_set(r->err, -EINVAL,
                   "%s: '%s' has an opening quote without its closing one, or text behind that; write "
                   "the value as \"VALUE\"",
                   from, s->name);
  if (!printable(value))
    return err_set(r->err, -EINVAL, "%s: '%s' contains a control character; remove it", from, s->name);
  if (str_copyz(value, text, sizeof(text)))
    return err_set(r->err, -EINVAL, "%s: the value of '%s' is longer than %zu bytes", from, s->name, sizeof(text) - 1);
  int k = setting_put(r->c, s, text, from, r->err);
  explicit_bzero(text, sizeof(text));
  return k;
}

/* Lines of `name = value`; '#' begins a comment; values may stand in double quotes. */
static int read_file(struct reading *r, const char *path)
{
  cleanup_buf struct buf b = BUF_INIT(1 << 20);
  int k = file_read(path, &b);
  if (k)
    return look_at(r, err_set(r->err, k, "config file %s: %s", path, strerrordesc_np(-k)));
  struct str rest = buf_str(&b), line;
  for (int n = 1; !k && rest.n; n++) {
    char from[DATA_PATH_SIZE + 16];
    str_cut(rest, '\n', &line, &rest);
    line = str_trim(line);
    if (!line.n || line.p[0] == '#')
      continue;
    snprintf(from, sizeof(from), "%s:%d", path, n);
    k = look_at(r, take_line(r, line, from));
  }
  explicit_bzero(b.p, b.n); /* it may hold the administrator's token, which gates must not keep */
  return k;
}

static int is_drop_in(const struct dirent *e)
{
  return e->d_name[0] != '.' && str_ends(str_of(e->d_name), STR(".conf"));
}

static int by_name(const struct dirent **a, const struct dirent **b)
{
  return strcmp((*a)->d_name, (*b)->d_name);
}

/* FILE.d/NAME.conf, by name: a later one wins over an earlier one and over FILE. */
static int read_drop_ins(struct reading *r, const char *file)
{
  char dir[DATA_DIR_SIZE + 2], path[DATA_PATH_SIZE];
  struct dirent **list = NULL;
  snprintf(dir, sizeof(dir), "%s.d", file);
  int n = scandir(dir, &list, is_drop_in, by_name), k = 0;
  if (n < 0 && errno != ENOENT)
    return look_at(r, err_errno(r->err, "config directory %s", dir));
  for (int i = 0; i < n; i++) {
    if (!k && (size_t)snprintf(path, sizeof(path), "%s/%s", dir, list[i]->d_name) < sizeof(path))
      k = read_file(r, path);
    free(list[i]);
  }
  free(list);
  return k;
}

static int read_files(struct reading *r)
{
  struct config *c = r->c;
  if (!strcmp(c->config_file, CONFIG_NONE))
    return 0;
  bool named = c->config_file[0];
  if (!named)
    snprintf(c->config_file, sizeof(c->config_file), "%s", CONFIG_FILE);
  int k = named || access(c->config_file, F_OK) == 0 ? read_file(r, c->config_file) : 0;
  return k ? k : read_drop_ins(r, c->config_file);
}

/* ---- environment and flags ---- */

static int read_environment(struct reading *r)
{
  size_t n;
  const struct setting *all = settings_table(&n);
  for (size_t i = 0; i < n; i++) {
    char name[64] = "CLOCHE_";
    for (size_t k = 0; all[i].name[k]; k++) {
      char ch = all[i].name[k];
      name[7 + k] = ch >= 'a' && ch <= 'z' ? (char)(ch - 32) : ch;
    }
    const char *value = getenv(name);
    int k = value && value[0] ? look_at(r, setting_put(r->c, &all[i], value, name, r->err)) : 0;
    if (k)
      return k;
  }
  return 0;
}

/* One flag: `--name value` or `--name=value`. How many words it takes, or negative; `name` is empty where it has no
 * value. */
static int split_flag(int argc, char **argv, struct str *name, const char **value, struct err *err)
{
  struct str word = str_of(argv[0]), behind;
  *name = STR_NONE;
  if (!strcmp(argv[0], "--help") || !strcmp(argv[0], "-h") || !strcmp(argv[0], "--print-config"))
    return 1;
  if (!str_starts(word, STR("--")))
    return err_set(err, -EINVAL, "unexpected word '%s'", argv[0]);
  bool joined = str_cut(str_skip(word, 2), '=', name, &behind);
  if (!joined && argc < 2)
    return err_set(err, -EINVAL, "'%s' needs a value", argv[0]);
  *value = joined ? behind.p : argv[1];
  return joined ? 1 : 2;
}

static int take_flag(struct reading *r, const char *word, struct str name, const char *text)
{
  struct config *c = r->c;
  const struct setting *s = name.n ? setting_find(name) : NULL;
  char from[96];
  if (!name.n) {
    bool print = !strcmp(word, "--print-config");
    c->print |= print;
    c->help |= !print;
    return 0;
  }
  snprintf(from, sizeof(from), "--" STR_FMT, STR_ARG(str_sub(name, 0, 80)));
  if (s)
    return setting_put(c, s, text, from, r->err);
  if (str_is(name, "config") || str_is(name, "settings-fd"))
    return 0; /* find_files has read them */
  if (str_is(name, "ready-file"))
    return str_copyz(str_of(text), c->ready_file, sizeof(c->ready_file));
  if (str_is(name, "role"))
    return str_copyz(str_of(text), c->role, sizeof(c->role));
  if (str_is(name, "exit-with"))
    return str_i64(str_of(text), &c->exit_with) || c->exit_with <= 0
               ? err_set(r->err, -EINVAL, "--exit-with needs a process id, not '%s'", text)
               : 0;
  return setting_unknown("command line", name, r->err);
}

static int read_flags(struct reading *r, int argc, char **argv)
{
  for (int i = 1; i < argc;) {
    struct str name;
    const char *value = NULL;
    int took = split_flag(argc - i, argv + i, &name, &value, r->err);
    int k = look_at(r, took < 0 ? took : take_flag(r, argv[i], name, value));
    if (k)
      return k;
    i += took > 0 ? took : 1;
  }
  return 0;
}

/* Which file to read, before anything else is looked at. */
static int find_files(struct config *c, int argc, char **argv, struct err *err)
{
  const char *env = getenv("CLOCHE_CONFIG"), *value = NULL;
  int r = env ? str_copyz(str_of(env), c->config_file, sizeof(c->config_file)) : 0;
  c->settings_fd = -1;
  for (int i = 1, took; i < argc; i += took) {
    struct str name;
    if ((took = split_flag(argc - i, argv + i, &name, &value, err)) < 0)
      break; /* read_flags tells */
    uint64_t fd;
    if (str_is(name, "config"))
      r = str_copyz(str_of(value), c->config_file, sizeof(c->config_file));
    else if (str_is(name, "settings-fd") && !str_u64(str_of(value), &fd) && fd < 1024)
      c->settings_fd = (int)fd;
  }
  return r ? err_set(err, r, "--config: the path is longer than %zu bytes", sizeof(c->config_file) - 1) : 0;
}

/* What lies near the program: above build/src/cli in the source tree, or below ../lib/cloche once installed. */
static void find_near(struct config *c, const char *name, const char *in_tree, const char *installed)
{
  const char *const places[] = {in_tree, installed};
  const struct setting *s = setting_find(str_of(name));
  char exe[DATA_DIR_SIZE], path[DATA_PATH_SIZE];
  ssize_t n = readlink("/proc/self/exe", exe, sizeof(exe) - 1);
  if (setting_text(c, s)[0] || n <= 0)
    return;
  exe[n] = 0;
  struct str dir = path_dir(str_of(exe));
  for (size_t i = 0; i < ARRAY_LEN(places); i++) {
    snprintf(path, sizeof(path), STR_FMT "/%s", STR_ARG(dir), places[i]);
    if (access(path, F_OK) == 0 || i + 1 == ARRAY_LEN(places))
      setting_put_text(c, s, path);
    if (access(path, F_OK) == 0)
      return;
  }
}

/* The one that was installed with this program, else the one that scripts/criu makes. */
static void find_criu(struct config *c)
{
  const struct setting *s = setting_find(STR("criu"));
  char exe[DATA_DIR_SIZE], path[DATA_PATH_SIZE] = "";
  ssize_t n = readlink("/proc/self/exe", exe, sizeof(exe) - 1);
  if (setting_text(c, s)[0])
    return;
  exe[MAX(n, 0)] = 0;
  struct str dir = path_dir(str_of(exe));
  snprintf(path, sizeof(path), STR_FMT "/../lib/cloche-criu/criu", STR_ARG(dir));
  setting_put_text(c, s, n > 0 && access(path, X_OK) == 0 ? path : JAIL_CRIU_DEFAULT);
}

void config_share(struct config *c)
{
  c->warden.source.reserve_mb = c->warden.disk_reserve_mb;
  c->gate.log_bytes = c->warden.log_bytes;
  c->gate.webhook_private_allowed = c->sender.private_allowed;
  c->gate.metrics_teams_max = c->warden.metrics_teams_max;
  c->audit.data = c->warden.data;
  c->warden.audit_reads = c->gate.audit == AUDIT_ALL;
  c->warden.otlp_logs = c->exporter.logs;
  c->warden.otlp_traces = c->gate.otlp_traces;
  c->warden.otlp_sample_percent = c->gate.otlp_sample_percent;
  c->mcp.body_max = c->gate.api_body_max;
  c->egress.records_rate = c->warden.network_log_rate;
}

static void derive_node(struct config *c)
{
  struct machine m;
  c->warden.clustered = c->store.url[0] || c->store.file[0];
  if (!c->warden.clustered)
    return;
  machine_read(&m);
  if (!c->warden.node_name[0])
    setting_put_text(c, setting_find(STR("node_name")), m.host);
  if (!c->warden.node_address[0])
    setting_put_text(c, setting_find(STR("node_address")), c->tls_listen[0] ? c->tls_listen : c->listen);
}

void config_derive(struct config *c)
{
  find_near(c, "runtime", "../../runtime", "../lib/cloche/runtime");
  find_near(c, "console", "../../console", "../share/cloche/console");
  find_near(c, "debian_program", "../../../templates/debian", "../lib/cloche/templates/debian");
  find_criu(c);
  if (!c->debian)
    setting_put_text(c, setting_find(STR("debian_program")), "");
  if (!c->warden.volumes_dir[0]) {
    char path[DATA_PATH_SIZE];
    snprintf(path, sizeof(path), "%s/volumes", c->warden.data);
    setting_put_text(c, setting_find(STR("volumes_dir")), path);
  }
  derive_node(c);
  if (geteuid() != 0)
    c->store.uid = c->gate.uid = c->sender.uid = c->egress.uid = c->mcp.uid = c->audit.uid = c->exporter.uid = 0;
  c->warden.egress_uid = c->egress.uid;
  config_share(c);
}

/* ---- what must fit together ---- */

static const char *from_of(const struct config *c, const char *name)
{
  const char *from = c->from[setting_place(setting_find(str_of(name)))];
  return from ? from : "default";
}

/* A gate has room for a second team, whatever the first one does. */
static int check_team_connections(struct config *c, struct err *err)
{
  unsigned half = c->gate.connections_max / 2;
  if (c->gate.team_connections_max <= half)
    return 0;
  if (!strcmp(from_of(c, "team_connections_max"), "default")) {
    c->gate.team_connections_max = half;
    return 0;
  }
  return err_set(err, -EINVAL,
                 "%s: 'team_connections_max' may be at most %u, half of 'connections_max', not '%u': lower it, raise "
                 "'connections_max', or set 0 for no limit",
                 from_of(c, "team_connections_max"), half, c->gate.team_connections_max);
}

/* Whoever fetches for a team must not be who serves or sends. */
static int check_image_uids(struct config *c, struct err *err)
{
  const unsigned others[] = {c->gate.uid, c->egress.uid, c->sender.uid, c->mcp.uid, c->store.uid};
  uint32_t first = c->warden.source.uid, n = c->warden.source.uids;
  for (size_t i = 0; i < ARRAY_LEN(others); i++)
    if (others[i] >= first && others[i] - first < n)
      return err_set(err, -EINVAL,
                     "'image_uid' %u and the 'image_uids' %u from it on contain %u, which is 'gate_uid', "
                     "'egress_uid', 'webhook_uid', 'mcp_uid' or 'store_uid': choose another range",
                     first, n, others[i]);
  return 0;
}

static int check_addresses(struct config *c, struct err *err)
{
  static const char *const names[] = {"listen", "tls_listen", "metrics_listen"};
  for (size_t i = 0; i < ARRAY_LEN(names); i++) {
    const char *text = setting_text(c, setting_find(str_of(names[i])));
    struct str all = str_of(text);
    ptrdiff_t colon = str_rfind(all, ':');
    char host[LISTEN_HOST_SIZE];
    struct in_addr a;
    uint64_t port;
    bool good = colon > 0 && !str_copyz(str_sub(all, 0, (size_t)colon), host, sizeof(host)) &&
                !str_u64(str_skip(all, (size_t)colon + 1), &port) && port <= 65535;
    if (!good && (all.n || i == 0))
      return err_set(err, -EINVAL, "%s: '%s' must be ADDRESS:PORT, not '%s'", from_of(c, names[i]), names[i], text);
    if (good && inet_pton(AF_INET, host, &a) != 1)
      return err_set(err, -EINVAL, "%s: '%s' needs an IPv4 address and a port, not '%s'", from_of(c, names[i]),
                     names[i], text);
  }
  return 0;
}

/* A password would be in `ps`, in `cloche config` and in the settings of every role. */
static bool has_password(struct str url)
{
  struct str host, rest = str_skip(url, (size_t)str_find(url, '/') + 2), user, options;
  str_cut(rest, '/', &host, &options);
  ptrdiff_t at = str_rfind(host, '@');
  user = str_sub(host, 0, (size_t)MAX(at, (ptrdiff_t)0));
  return str_find(user, ':') >= 0 || str_search(options, STR("password=")) >= 0;
}

static int check_store(struct config *c, struct err *err)
{
  struct str url = str_of(c->store.url);
  if (!url.n && !c->store.file[0])
    return 0;
  if (url.n && c->store.file[0])
    return err_set(err, -EINVAL, "%s: 'store' and 'store_file' (%s) are both set; keep one of them",
                   from_of(c, "store"), from_of(c, "store_file"));
  if (url.n && !str_starts(url, STR("postgres://")) && !str_starts(url, STR("postgresql://")))
    return err_set(err, -EINVAL, "%s: 'store' must begin with postgres:// or postgresql://", from_of(c, "store"));
  if (url.n && has_password(url))
    return err_set(err, -EINVAL,
                   "%s: 'store' holds a password, which others could read; write the URL into a file that only root "
                   "reads, and name that in 'store_file'",
                   from_of(c, "store"));
  if (c->warden.node_name[0] && !node_name_valid(str_of(c->warden.node_name)))
    return err_set(err, -EINVAL, "%s: 'node_name' may have letters, digits and . _ -, not '%s'",
                   from_of(c, "node_name"), c->warden.node_name);
  if (!node_labels_valid(str_of(c->warden.node_labels)))
    return err_set(err, -EINVAL, "%s: 'node_labels' must be name=value by spaces, not '%s'", from_of(c, "node_labels"),
                   c->warden.node_labels);
  return 0;
}

/* ---- reading ---- */

static int read_sources(struct reading *r, int argc, char **argv)
{
  static int (*const checks[])(struct config *, struct err *) = {check_team_connections, check_image_uids,
                                                                 check_addresses, check_store};
  int k = look_at(r, find_files(r->c, argc, argv, r->err));
  k = k ? k : read_files(r);
  k = k ? k : read_environment(r);
  k = k ? k : read_flags(r, argc, argv);
  for (size_t i = 0; !k && i < ARRAY_LEN(checks); i++)
    k = look_at(r, checks[i](r->c, r->err));
  return k;
}

static void set_defaults(struct config *c)
{
  size_t n;
  const struct setting *all = settings_table(&n);
  *c = (struct config){.from = xcalloc(n, sizeof(char *)), .settings_fd = -1};
  for (size_t i = 0; i < n; i++)
    setting_put(c, &all[i], all[i].fallback, "default", NULL);
}

/* A role that the supervisor started takes the settings in force from it: the files may have changed since, and may be
 * wrong by now. */
static int read_given(struct reading *r, int argc, char **argv)
{
  cleanup_buf struct buf b = BUF_INIT(1 << 20);
  ssize_t k = 1;
  for (off_t at = 0; k > 0; at += k) {
    if (buf_reserve(&b, 65536))
      return err_set(r->err, -ENOMEM, "settings of the supervisor: out of memory");
    k = pread(r->c->settings_fd, b.p + b.n, 65536, at);
    b.n += k > 0 ? (size_t)k : 0;
  }
  if (k < 0)
    return err_errno(r->err, "settings of the supervisor");
  close(r->c->settings_fd);
  int n = read_flags(r, argc, argv); /* for the role's name */
  n = n ? n : config_unpack(r->c, buf_str(&b), false, r->err);
  explicit_bzero(b.p, b.n);
  return n;
}

static int read_all(struct reading *r, int argc, char **argv)
{
  set_defaults(r->c);
  struct err ignored = ERR_NONE;
  find_files(r->c, argc, argv, &ignored);
  int k = r->c->settings_fd >= 0 ? read_given(r, argc, argv) : read_sources(r, argc, argv);
  config_derive(r->c);
  return k;
}

int config_read(struct config *c, int argc, char **argv, struct err *err)
{
  struct reading r = {.c = c, .err = err};
  return read_all(&r, argc, argv);
}

size_t config_check(struct config *c, int argc, char **argv, config_mistake_fn mistake, void *arg)
{
  struct err err = ERR_NONE;
  struct reading r = {.c = c, .err = &err, .mistake = mistake, .arg = arg};
  read_all(&r, argc, argv);
  return r.mistakes;
}
