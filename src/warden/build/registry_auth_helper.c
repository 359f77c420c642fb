/* SPDX-License-Identifier: Apache-2.0 */
/* registry_auth_helper.c - the process that reads credentials and what a cloud answers; see registry_auth.h. It runs as
 * the user without rights that fetches images, so that a mistake here costs one fetch and not the host. */
#include "warden/build/registry_auth.h"

#include "warden/core/helper_proc.h"
#include <stdio.h>

#define TARGET      "AmazonEC2ContainerRegistry_V20150921.GetAuthorizationToken"
#define JSON_TYPE   "application/x-amz-json-1.1"
#define ASK_SECONDS (REGISTRY_AUTH_SECONDS - 5)
#define KEY_MAX     256 /* bytes of a key id or a secret key */

/* ---- AWS ---- */

struct aws {
  struct str key_id, secret, region;
  char url[300];
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

static int read_aws(const struct json *j, const char *ecr, struct aws *a, struct err *err)
{
  *a = (struct aws){.key_id = json_text(json_get(j, "awsAccessKeyId"), STR_NONE),
                    .secret = json_text(json_get(j, "awsSecretAccessKey"), STR_NONE),
                    .region = json_text(json_get(j, "awsRegion"), STR_NONE)};
  if (!plain(a->key_id, KEY_MAX) || !plain(a->secret, KEY_MAX) || str_find(a->key_id, ':') >= 0)
    return err_set(err, -EINVAL, "fromImageRegistry of the type aws needs awsAccessKeyId and awsSecretAccessKey");
  if (!region_name(a->region))
    return err_set(err, -EINVAL, "awsRegion '" STR_FMT "' is not a region name, such as us-east-1",
                   STR_ARG(str_sub(a->region, 0, 60)));
  const char *country = str_starts(a->region, STR("cn-")) ? ".cn" : "";
  if (ecr[0])
    snprintf(a->url, sizeof(a->url), "%s", ecr);
  else
    snprintf(a->url, sizeof(a->url), "https://api.ecr." STR_FMT ".amazonaws.com%s/", STR_ARG(a->region), country);
  ptrdiff_t at = str_search(str_of(a->url), STR("://"));
  struct str host, path;
  bool alone = !str_cut(str_skip(str_of(a->url), at < 0 ? 0 : (size_t)at + 3), '/', &host, &path);
  if (at < 0 || !plain(str_of(a->url), sizeof(a->url)) || !host.n || (!alone && path.n))
    return err_set(err, -EINVAL, "the setting image_ecr_url must be http or https, a host and no path, not '%s'",
                   a->url);
  return 0;
}

/* curl signs the request itself. The key goes to its standard input with the rest, so no process list shows it. */
static void put_request(struct buf *b, const struct aws *a)
{
  buf_addf(b, "url = \"%s\"\nproto = \"=http,https\"\nrequest = \"POST\"\ndata = \"{}\"\n", a->url);
  buf_addf(b, "silent\nshow-error\nmax-time = %d\nwrite-out = \"\\n%%{http_code}\"\n", ASK_SECONDS);
  buf_addf(b, "header = \"content-type: " JSON_TYPE "\"\nheader = \"x-amz-target: " TARGET "\"\n");
  buf_addf(b, "aws-sigv4 = \"aws:amz:" STR_FMT ":ecr\"\n", STR_ARG(a->region));
  buf_addf(b, "user = \"" STR_FMT ":" STR_FMT "\"\n", STR_ARG(a->key_id), STR_ARG(a->secret));
}

/* {"authorizationData":[{"authorizationToken":"base64 of AWS:password"}]}, then the status on a line of its own. */
static int take_token(struct str answer, struct buf *code, struct err *err)
{
  cleanup_arena struct arena a = ARENA_INIT(4 * REGISTRY_AUTH_MAX);
  ptrdiff_t at = str_rfind(answer, '\n');
  struct json *j = json_read(&a, str_sub(answer, 0, at < 0 ? 0 : (size_t)at), 0, NULL);
  struct str status = str_skip(answer, at < 0 ? 0 : (size_t)at + 1),
             message = json_text(json_get(j, "message"), STR_NONE);
  message = message.n ? message : json_text(json_get(j, "Message"), STR_NONE);
  if (!str_is(status, "200"))
    return err_set(
        err, -EACCES, "AWS gave no token for the registry (status " STR_FMT "): " STR_FMT,
        STR_ARG(str_sub(status, 0, 3)),
        STR_ARG(str_sub(message.n ? message : json_text(json_get(j, "__type"), STR("no reason given")), 0, 300)));
  const struct json *list = json_get(j, "authorizationData");
  struct str token = json_text(json_get(list ? list->kids : NULL, "authorizationToken"), STR_NONE);
  if (!registry_auth_code(token) || buf_adds(code, token))
    return err_set(err, -EPROTO, "the response of AWS has no usable token");
  return 0;
}

static int ask_aws(const struct json *j, const char *ecr, struct buf *code, struct err *err)
{
  struct aws a;
  cleanup_buf struct buf request = BUF_INIT(8192), answer = BUF_INIT(REGISTRY_AUTH_MAX);
  int r = read_aws(j, ecr, &a, err);
  if (r)
    return r;
  put_request(&request, &a);
  const char *const argv[] = {"curl", "-q", "--config", "-", NULL};
  struct helper_proc c = {.argv = argv,
                          .work = -1,
                          .source = -1,
                          .seconds = REGISTRY_AUTH_SECONDS,
                          .input = buf_str(&request),
                          .answer = &answer};
  r = helper_proc_run(&c, err);
  return r ? err_wrap(err, "asking AWS for a token of the registry") : take_token(buf_str(&answer), code, err);
}

/* ---- all kinds ---- */

static int put_pair(struct str user, struct str password, struct buf *code, struct err *err)
{
  cleanup_buf struct buf pair = BUF_INIT(REGISTRY_AUTH_MAX);
  if (!user.n || !password.n || str_find(user, ':') >= 0)
    return err_set(err, -EINVAL,
                   "fromImageRegistry needs the type registry (username, password), gcp (serviceAccountJson) or aws");
  buf_adds(&pair, user);
  buf_addc(&pair, ':');
  if (buf_adds(&pair, password))
    return err_set(err, -E2BIG, "the registry's credentials exceed %zu bytes", REGISTRY_AUTH_MAX);
  base64_add(code, pair.p, pair.n, true);
  explicit_bzero(pair.p, pair.n);
  return 0;
}

static int read_any(struct str text, const char *ecr, struct buf *code, struct err *err)
{
  cleanup_arena struct arena a = ARENA_INIT(4 * REGISTRY_AUTH_MAX);
  struct json *j = json_read(&a, text, 0, NULL);
  struct str type = json_text(json_get(j, "type"), STR_NONE);
  if (str_is(type, "aws"))
    return ask_aws(j, ecr, code, err);
  if (str_is(type, "gcp"))
    return put_pair(STR("_json_key"), json_text(json_get(j, "serviceAccountJson"), STR_NONE), code, err);
  bool pair = str_is(type, "registry");
  return put_pair(pair ? json_text(json_get(j, "username"), STR_NONE) : STR_NONE,
                  json_text(json_get(j, "password"), STR_NONE), code, err);
}

/* Standard input to its end; more than `b` takes is an error. */
static int read_input(struct buf *b)
{
  char piece[4096];
  ssize_t n;
  while ((n = read(0, piece, sizeof(piece))) > 0)
    if (buf_add(b, piece, (size_t)n))
      return -E2BIG;
  return n < 0 ? -errno : 0;
}

int registry_auth_main(int argc, char **argv)
{
  cleanup_buf struct buf text = BUF_INIT(REGISTRY_AUTH_MAX), code = BUF_INIT(2 * REGISTRY_AUTH_MAX);
  struct err err = ERR_NONE;
  int r = read_input(&text);
  if (r)
    err_set(&err, r, "the registry's credentials can't be read, or exceed %zu bytes", REGISTRY_AUTH_MAX);
  else
    r = read_any(buf_str(&text), argc > 1 ? argv[1] : "", &code, &err);
  puts(r ? err.msg : buf_z(&code));
  return r ? 1 : 0;
}
