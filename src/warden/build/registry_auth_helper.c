/* credential.c - see credential.h. */
#include "warden/build/registry_auth.h"

#include "warden/build/helper_proc.h"
#include "warden/sigv4.h"
#include <stdio.h>

#define TARGET      "AmazonEC2ContainerRegistry_V20150921.GetAuthorizationToken"
#define JSON_TYPE   "application/x-amz-json-1.1"
#define ASK_SECONDS 30
#define KEY_MAX     256 /* bytes of a key id or a secret key */

/* ---- AWS ---- */

struct aws {
  struct str key_id, secret, region;
  char url[300], host[256];
};

/* Printable and without what could break out of a line of curl's configuration. */
static bool plain(struct str s, size_t most)
{
  for (size_t i = 0; i < s.n; i++)
    if (s.p[i] <= ' ' || s.p[i] > '~' || s.p[i] == '"' || s.p[i] == '\\')
      return false;
  return s.n > 0 && s.n <= most;
}

static bool region_name(struct str s)
{
  for (size_t i = 0; i < s.n; i++)
    if (!((s.p[i] >= 'a' && s.p[i] <= 'z') || (s.p[i] >= '0' && s.p[i] <= '9') || s.p[i] == '-'))
      return false;
  return s.n > 0 && s.n <= 40;
}

static int read_aws(const struct json *j, const struct source_rules *rules, struct aws *a, struct err *err)
{
  *a = (struct aws){.key_id = json_text(json_get(j, "awsAccessKeyId"), STR_NONE),
                    .secret = json_text(json_get(j, "awsSecretAccessKey"), STR_NONE),
                    .region = json_text(json_get(j, "awsRegion"), STR_NONE)};
  if (!plain(a->key_id, KEY_MAX) || !plain(a->secret, KEY_MAX))
    return err_set(err, -EINVAL, "fromImageRegistry of the type aws needs awsAccessKeyId and awsSecretAccessKey");
  if (!region_name(a->region))
    return err_set(err, -EINVAL, "awsRegion '" STR_FMT "' is no name of a region, such as us-east-1", STR_ARG(str_sub(a->region, 0, 60)));
  const char *country = str_starts(a->region, STR("cn-")) ? ".cn" : "";
  if (rules->ecr && rules->ecr[0])
    snprintf(a->url, sizeof(a->url), "%s", rules->ecr);
  else
    snprintf(a->url, sizeof(a->url), "https://api.ecr." STR_FMT ".amazonaws.com%s/", STR_ARG(a->region), country);
  ptrdiff_t at = str_search(str_of(a->url), STR("://"));
  struct str host, path;
  bool alone = !str_cut(str_skip(str_of(a->url), at < 0 ? 0 : (size_t)at + 3), '/', &host, &path);
  if (at < 0 || !plain(str_of(a->url), sizeof(a->url)) || str_copyz(host, a->host, sizeof(a->host)) || (!alone && path.n))
    return err_set(err, -EINVAL, "the setting image_ecr_url must be http or https, a host and no path, not '%s'", a->url);
  return 0;
}

static void put_question(struct buf *b, const struct aws *a)
{
  char date[SIGV4_DATE];
  cleanup_buf struct buf proof = BUF_INIT(2048);
  sigv4_date(clock_wall_us(), date);
  const struct sigv4_header headers[] = {
      {"content-type", STR(JSON_TYPE)}, {"host", str_of(a->host)}, {"x-amz-date", str_of(date)}, {"x-amz-target", STR(TARGET)}};
  struct sigv4 s = {.key_id = a->key_id,
                    .secret = a->secret,
                    .region = a->region,
                    .service = STR("ecr"),
                    .method = "POST",
                    .path = "/",
                    .headers = headers,
                    .nheaders = ARRAY_LEN(headers),
                    .body = STR("{}")};
  sigv4_sign(&s, date, &proof);
  buf_addf(b, "url = \"%s\"\nproto = \"=http,https\"\nrequest = \"POST\"\ndata = \"{}\"\n", a->url);
  buf_addf(b, "silent\nshow-error\nmax-time = %d\nwrite-out = \"\\n%%{http_code}\"\n", ASK_SECONDS);
  for (size_t i = 0; i < ARRAY_LEN(headers); i++)
    buf_addf(b, "header = \"%s: " STR_FMT "\"\n", headers[i].name, STR_ARG(headers[i].value));
  buf_addf(b, "header = \"authorization: " STR_FMT "\"\n", STR_ARG(buf_str(&proof)));
}

static bool base64_text(struct str s)
{
  for (size_t i = 0; i < s.n; i++) {
    char c = s.p[i];
    if (!((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '+' || c == '/' || c == '='))
      return false;
  }
  return s.n > 0;
}

/* {"authorizationData":[{"authorizationToken":"base64 of AWS:password"}]}, then the status on a line of its own. */
static int take_token(struct str answer, struct buf *code, struct err *err)
{
  cleanup_arena struct arena a = ARENA_INIT(4 * CREDENTIAL_MAX);
  ptrdiff_t at = str_rfind(answer, '\n');
  struct json *j = json_read(&a, str_sub(answer, 0, at < 0 ? 0 : (size_t)at), 0, NULL);
  struct str status = str_skip(answer, at < 0 ? 0 : (size_t)at + 1), message = json_text(json_get(j, "message"), STR_NONE);
  message = message.n ? message : json_text(json_get(j, "Message"), STR_NONE);
  if (!str_is(status, "200"))
    return err_set(err, -EACCES, "AWS gave no token for the registry (status " STR_FMT "): " STR_FMT, STR_ARG(str_sub(status, 0, 3)),
                   STR_ARG(str_sub(message.n ? message : json_text(json_get(j, "__type"), STR("no reason told")), 0, 300)));
  const struct json *list = json_get(j, "authorizationData");
  struct str token = json_text(json_get(list ? list->kids : NULL, "authorizationToken"), STR_NONE);
  if (!base64_text(token) || buf_adds(code, token))
    return err_set(err, -EPROTO, "AWS answered without a token that could be used");
  return 0;
}

static int ask_aws(const struct source_spec *s, int work, const struct json *j, struct buf *code, struct err *err)
{
  struct aws a;
  cleanup_buf struct buf question = BUF_INIT(8192), answer = BUF_INIT(CREDENTIAL_MAX);
  int r = read_aws(j, s->rules, &a, err);
  if (r)
    return r;
  put_question(&question, &a);
  const char *const argv[] = {"curl", "-q", "--config", "-", NULL};
  struct courier c = {.argv = argv,
                      .uid = s->rules->uid,
                      .work = work,
                      .source = -1,
                      .seconds = source_seconds(s, ASK_SECONDS + 5),
                      .input = buf_str(&question),
                      .answer = &answer,
                      .cancelled = s->cancelled};
  r = courier_run(&c, err);
  if (r)
    return r == -ECANCELED ? r : err_wrap(err, "asking AWS for a token of the registry");
  return take_token(buf_str(&answer), code, err);
}

/* ---- all kinds ---- */

static int put_pair(struct str user, struct str password, struct buf *code, struct err *err)
{
  cleanup_buf struct buf pair = BUF_INIT(CREDENTIAL_MAX);
  if (!user.n || !password.n || str_find(user, ':') >= 0)
    return err_set(err, -EINVAL, "fromImageRegistry needs the type registry (username, password), gcp (serviceAccountJson) or aws");
  buf_adds(&pair, user);
  buf_addc(&pair, ':');
  if (buf_adds(&pair, password))
    return err_set(err, -E2BIG, "the registry's credentials exceed %zu bytes", CREDENTIAL_MAX);
  base64_add(code, pair.p, pair.n, true);
  explicit_bzero(pair.p, pair.n);
  return 0;
}

int credential_read(const struct source_spec *s, int work, struct buf *code, struct err *err)
{
  cleanup_arena struct arena a = ARENA_INIT(4 * CREDENTIAL_MAX);
  struct json *j = json_read(&a, s->registry, 0, NULL);
  struct str type = json_text(json_get(j, "type"), STR_NONE);
  if (str_is(type, "aws"))
    return ask_aws(s, work, j, code, err);
  if (str_is(type, "gcp"))
    return put_pair(STR("_json_key"), json_text(json_get(j, "serviceAccountJson"), STR_NONE), code, err);
  bool pair = str_is(type, "registry");
  return put_pair(pair ? json_text(json_get(j, "username"), STR_NONE) : STR_NONE, json_text(json_get(j, "password"), STR_NONE), code, err);
}
