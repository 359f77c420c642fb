/* SPDX-License-Identifier: Apache-2.0 */
/* post.c - see post.h. Names are resolved on threads (lookup.h), transfers are libcurl's on the loop. The
 * addresses that were checked are given to libcurl as the name's only ones, and the callback that opens its sockets
 * checks again what it is about to connect to: a name that resolves differently a moment later makes no difference. */
#include "sender/post.h"

#include <arpa/inet.h>
#include <stdio.h>

#define READ_MAX    ((size_t)64 << 10) /* bytes of an answer's head, and of its body, before we hang up */
#define HEADERS_MAX 64
#define SWEEP_MS    200
#define ADDRESSES   16

struct header {
  char *name, *value;
};

struct post {
  struct posts *posts;
  struct post *next, **at;
  char id[UUID_TEXT];
  CURLU *url;
  char *host, *port;
  CURL *easy;
  struct curl_slist *headers, *resolve;
  struct buf body;
  struct lookup lookup;
  bool resolving, told;
  struct sockaddr_storage checked[ADDRESSES];
  size_t nchecked;
  int64_t began_us;
  char refused[256]; /* why the address was refused */
  char why[CURL_ERROR_SIZE];
  VEC(struct header) answer_headers;
  struct buf answer;
  size_t read, head_read, kept;
};

/* ---- life ---- */

static void headers_clear(struct post *p)
{
  for (size_t i = 0; i < p->answer_headers.n; i++) {
    free(p->answer_headers.p[i].name);
    free(p->answer_headers.p[i].value);
  }
  p->answer_headers.n = 0;
  p->kept = 0;
}

static void post_free(struct post *p)
{
  if (p->easy) {
    curl_multi_remove_handle(p->posts->multi, p->easy);
    curl_easy_cleanup(p->easy);
  }
  *p->at = p->next;
  if (p->next)
    p->next->at = p->at;
  curl_slist_free_all(p->headers);
  curl_slist_free_all(p->resolve);
  curl_free(p->host);
  curl_free(p->port);
  curl_url_cleanup(p->url);
  headers_clear(p);
  vec_free(&p->answer_headers);
  buf_free(&p->body);
  buf_free(&p->answer);
  free(p);
}

/* ---- the report ---- */

static void put_headers(struct buf *out, const struct post *p)
{
  struct jw w = JW(out);
  jw_open(&w, '{');
  for (size_t i = 0; i < p->answer_headers.n; i++) {
    jw_keys(&w, str_of(p->answer_headers.p[i].name));
    jw_z(&w, p->answer_headers.p[i].value);
  }
  jw_close(&w, '}');
}

static void tell(struct post *p, enum delivery_class class, long status, const char *message)
{
  cleanup_buf struct buf b = BUF_INIT(WIRE_MAX), h = BUF_INIT(8 * DELIVERY_KEPT);
  if (p->told || !p->posts->link)
    return;
  p->told = true;
  wire_begin(&b, WIRE_SENT, 0, 0);
  wire_putz(&b, W_ID, p->id);
  wire_put_u64(&b, W_CLASS, class);
  wire_put_u64(&b, W_DURATION, (uint64_t)((clock_mono_us() - p->began_us) / 1000));
  if (status) {
    put_headers(&h, p);
    wire_put_u64(&b, W_HTTP_STATUS, (uint64_t)status);
    if (!buf_failed(&h))
      wire_put(&b, W_HEADERS, buf_str(&h));
    wire_put(&b, W_BODY, buf_str(&p->answer));
  }
  if (message)
    wire_putz(&b, W_MESSAGE, message);
  ipc_send(p->posts->link, buf_str(&b), -1);
}

static void give_up(struct post *p, enum delivery_class class, const char *message)
{
  tell(p, class, 0, message);
  if (!p->resolving) /* else its thread still holds it */
    post_free(p);
}

/* ---- addresses ---- */

/* Only an address of this machine can be bound to. */
static bool is_local(const struct sockaddr *address)
{
  struct sockaddr_storage probe = {0};
  size_t size = address->sa_family == AF_INET ? sizeof(struct sockaddr_in) : sizeof(struct sockaddr_in6);
  memcpy(&probe, address, size);
  if (address->sa_family == AF_INET)
    ((struct sockaddr_in *)&probe)->sin_port = 0;
  else
    ((struct sockaddr_in6 *)&probe)->sin6_port = 0;
  cleanup_fd int fd = socket(address->sa_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  return fd >= 0 && !bind(fd, (struct sockaddr *)&probe, (socklen_t)size);
}

static void address_text(const struct sockaddr *address, char out[INET6_ADDRSTRLEN])
{
  const void *raw = address->sa_family == AF_INET ? (const void *)&((const struct sockaddr_in *)address)->sin_addr
                                                  : &((const struct sockaddr_in6 *)address)->sin6_addr;
  if (!inet_ntop(address->sa_family, raw, out, INET6_ADDRSTRLEN))
    out[0] = 0;
}

static bool may_reach(struct post *p, const struct sockaddr *address)
{
  const char *why = receiver_refused(&p->posts->rules, address, is_local(address));
  char text[INET6_ADDRSTRLEN];
  if (!why)
    return true;
  address_text(address, text);
  snprintf(p->refused, sizeof(p->refused), "the address %s %s", text, why);
  return false;
}

static bool was_checked(const struct post *p, const struct sockaddr *address)
{
  char wanted[INET6_ADDRSTRLEN], have[INET6_ADDRSTRLEN];
  address_text(address, wanted);
  for (size_t i = 0; i < p->nchecked; i++) {
    address_text((const struct sockaddr *)&p->checked[i], have);
    if (p->checked[i].ss_family == address->sa_family && !strcmp(wanted, have))
      return true;
  }
  return false;
}

static curl_socket_t open_socket(void *arg, curlsocktype purpose, struct curl_sockaddr *a)
{
  struct post *p = arg;
  if (purpose != CURLSOCKTYPE_IPCXN || (a->family != AF_INET && a->family != AF_INET6) || !may_reach(p, &a->addr))
    return CURL_SOCKET_BAD;
  if (!was_checked(p, &a->addr)) {
    snprintf(p->refused, sizeof(p->refused), "the connection would go to an address that the name did not resolve to");
    return CURL_SOCKET_BAD;
  }
  return socket(a->family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
}

/* ---- what the receiver says ---- */

static size_t on_body(char *data, size_t size, size_t count, void *arg)
{
  struct post *p = arg;
  size_t n = size * count, room = DELIVERY_KEPT - p->answer.n;
  buf_add(&p->answer, data, MIN(n, room));
  p->read += n;
  return p->read > READ_MAX ? 0 : n; /* 0: hang up; the status is known */
}

static void keep_header(struct post *p, struct str name, struct str value)
{
  if (p->answer_headers.n == HEADERS_MAX || p->kept + name.n + value.n > DELIVERY_KEPT)
    return;
  p->kept += name.n + value.n;
  for (size_t i = 0; i < p->answer_headers.n; i++) {
    struct header *have = &p->answer_headers.p[i];
    if (!str_ieq(str_of(have->name), name))
      continue;
    char *joined = xasprintf("%s, " STR_FMT, have->value, STR_ARG(value));
    free(have->value);
    have->value = joined;
    return;
  }
  struct header h = {xstrndup(name.p, name.n), xstrndup(value.p, value.n)};
  vec_push(&p->answer_headers, h);
}

static size_t on_header(char *data, size_t size, size_t count, void *arg)
{
  struct post *p = arg;
  struct str line = {data, size * count}, name, value;
  p->head_read += line.n;
  if (p->head_read > READ_MAX)
    return 0;
  if (str_starts(line, STR("HTTP/")))
    headers_clear(p); /* of an interim answer */
  else if (str_cut(line, ':', &name, &value) && name.n)
    keep_header(p, name, str_trim(value));
  return size * count;
}

static CURLcode on_tls(CURL *easy, void *context, void *arg)
{
  struct post *p = arg;
  if (p->posts->roots)
    SSL_CTX_set1_cert_store(context, p->posts->roots);
  return CURLE_OK;
}

/* ---- the transfer ---- */

static void set_limits(struct post *p)
{
  CURL *e = p->easy;
  int64_t spent_ms = (clock_mono_us() - p->began_us) / 1000, all_ms = (int64_t)p->posts->config->seconds * 1000;
  curl_easy_setopt(e, CURLOPT_TIMEOUT_MS, (long)MAX(all_ms - spent_ms, (int64_t)1));
  curl_easy_setopt(e, CURLOPT_CONNECTTIMEOUT_MS, (long)all_ms);
  curl_easy_setopt(e, CURLOPT_PROTOCOLS_STR, "http,https");
  curl_easy_setopt(e, CURLOPT_FOLLOWLOCATION, 0L);
  curl_easy_setopt(e, CURLOPT_PROXY, "");
  curl_easy_setopt(e, CURLOPT_NOPROXY, "*");
  curl_easy_setopt(e, CURLOPT_NETRC, (long)CURL_NETRC_IGNORED);
  curl_easy_setopt(e, CURLOPT_HTTPAUTH, 0L);
  curl_easy_setopt(e, CURLOPT_NOSIGNAL, 1L);
  curl_easy_setopt(e, CURLOPT_FRESH_CONNECT, 1L);
  curl_easy_setopt(e, CURLOPT_FORBID_REUSE, 1L);
  curl_easy_setopt(e, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1);
  curl_easy_setopt(e, CURLOPT_SSLVERSION, (long)CURL_SSLVERSION_TLSv1_2);
  curl_easy_setopt(e, CURLOPT_SSL_VERIFYPEER, 1L);
  curl_easy_setopt(e, CURLOPT_SSL_VERIFYHOST, 2L);
  curl_easy_setopt(e, CURLOPT_CAINFO, NULL); /* they are in memory: see on_tls */
  curl_easy_setopt(e, CURLOPT_CAPATH, NULL);
}

static void set_callbacks(struct post *p)
{
  CURL *e = p->easy;
  curl_easy_setopt(e, CURLOPT_PRIVATE, p);
  curl_easy_setopt(e, CURLOPT_ERRORBUFFER, p->why);
  curl_easy_setopt(e, CURLOPT_OPENSOCKETFUNCTION, open_socket);
  curl_easy_setopt(e, CURLOPT_OPENSOCKETDATA, p);
  curl_easy_setopt(e, CURLOPT_WRITEFUNCTION, on_body);
  curl_easy_setopt(e, CURLOPT_WRITEDATA, p);
  curl_easy_setopt(e, CURLOPT_HEADERFUNCTION, on_header);
  curl_easy_setopt(e, CURLOPT_HEADERDATA, p);
  curl_easy_setopt(e, CURLOPT_SSL_CTX_FUNCTION, on_tls);
  curl_easy_setopt(e, CURLOPT_SSL_CTX_DATA, p);
}

static void transfer(struct post *p)
{
  p->easy = curl_easy_init();
  if (!p->easy) {
    give_up(p, DELIVERY_REQUEST, "the sender is out of memory");
    return;
  }
  set_limits(p);
  set_callbacks(p);
  curl_easy_setopt(p->easy, CURLOPT_CURLU, p->url);
  curl_easy_setopt(p->easy, CURLOPT_RESOLVE, p->resolve);
  curl_easy_setopt(p->easy, CURLOPT_HTTPHEADER, p->headers);
  curl_easy_setopt(p->easy, CURLOPT_POST, 1L);
  curl_easy_setopt(p->easy, CURLOPT_POSTFIELDS, p->body.p);
  curl_easy_setopt(p->easy, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)p->body.n);
  CURLMcode bad = curl_multi_add_handle(p->posts->multi, p->easy);
  if (bad) {
    curl_easy_cleanup(steal(&p->easy));
    give_up(p, DELIVERY_REQUEST, curl_multi_strerror(bad));
  }
}

static enum delivery_class class_of(const struct post *p, CURLcode code)
{
  if (p->refused[0])
    return DELIVERY_REQUEST;
  switch (code) {
  case CURLE_OPERATION_TIMEDOUT:
    return DELIVERY_TIMEOUT;
  case CURLE_COULDNT_RESOLVE_HOST:
    return DELIVERY_DNS;
  case CURLE_URL_MALFORMAT:
  case CURLE_UNSUPPORTED_PROTOCOL:
  case CURLE_OUT_OF_MEMORY:
    return DELIVERY_REQUEST;
  default:
    return DELIVERY_TRANSPORT;
  }
}

static void finished(struct post *p, CURLcode code)
{
  long status = 0;
  char message[128];
  curl_easy_getinfo(p->easy, CURLINFO_RESPONSE_CODE, &status);
  bool cut = code == CURLE_WRITE_ERROR && p->read > READ_MAX; /* by us, who have heard enough */
  if (code && !cut) {
    tell(p, class_of(p, code), status, p->refused[0] ? p->refused : p->why[0] ? p->why : curl_easy_strerror(code));
  } else if (status >= 200 && status < 300) {
    tell(p, DELIVERY_OK, status, NULL);
  } else {
    snprintf(message, sizeof(message), "the receiver answered %ld, not 200 to 299%s", status,
             status >= 300 && status < 400 ? "; redirects are not followed" : "");
    tell(p, DELIVERY_HTTP, status, message);
  }
  post_free(p);
}

static void harvest(struct posts *ps)
{
  int left;
  for (CURLMsg *m; (m = curl_multi_info_read(ps->multi, &left));) {
    struct post *p = NULL;
    if (m->msg != CURLMSG_DONE)
      continue;
    CURLcode code = m->data.result;
    curl_easy_getinfo(m->easy_handle, CURLINFO_PRIVATE, (char **)&p);
    finished(p, code);
  }
}

/* ---- libcurl on the loop ---- */

struct watch {
  uv_poll_t poll; /* first: closed as a handle */
  struct posts *posts;
  curl_socket_t fd;
};

static void on_ready(uv_poll_t *poll, int status, int events)
{
  const struct watch *w = (const struct watch *)poll;
  struct posts *ps = w->posts;
  int running, flags = status < 0 ? CURL_CSELECT_ERR : 0;
  flags |= events & UV_READABLE ? CURL_CSELECT_IN : 0;
  flags |= events & UV_WRITABLE ? CURL_CSELECT_OUT : 0;
  curl_multi_socket_action(ps->multi, w->fd, flags, &running);
  harvest(ps);
}

static void watch_closed(uv_handle_t *h)
{
  free(h);
}

static int on_socket(CURL *easy, curl_socket_t fd, int what, void *arg, void *watched)
{
  struct posts *ps = arg;
  struct watch *w = watched;
  if (what == CURL_POLL_REMOVE) {
    if (w) {
      uv_poll_stop(&w->poll);
      curl_multi_assign(ps->multi, fd, NULL);
      uv_close((uv_handle_t *)&w->poll, watch_closed);
    }
    return 0;
  }
  if (!w) {
    w = xcalloc(1, sizeof(*w));
    w->posts = ps;
    w->fd = fd;
    if (uv_poll_init_socket(ps->loop, &w->poll, fd)) {
      free(w);
      return -1;
    }
    curl_multi_assign(ps->multi, fd, w);
  }
  int events = (what & CURL_POLL_IN ? UV_READABLE : 0) | (what & CURL_POLL_OUT ? UV_WRITABLE : 0);
  return uv_poll_start(&w->poll, events, on_ready) ? -1 : 0;
}

static void on_time(uv_timer_t *t)
{
  struct posts *ps = t->data;
  int running;
  curl_multi_socket_action(ps->multi, CURL_SOCKET_TIMEOUT, 0, &running);
  harvest(ps);
}

static int on_timer(CURLM *multi, long ms, void *arg)
{
  struct posts *ps = arg;
  if (ms < 0)
    uv_timer_stop(&ps->timer);
  else
    uv_timer_start(&ps->timer, on_time, (uint64_t)MAX(ms, 1l), 0);
  return 0;
}

/* ---- names ---- */

/* "host:port:address,address": libcurl asks nobody else. */
static void pin_addresses(struct post *p)
{
  cleanup_buf struct buf b = BUF_INIT(4096);
  char text[INET6_ADDRSTRLEN];
  buf_addf(&b, "%s:%s:", p->host, p->port);
  for (size_t i = 0; i < p->nchecked; i++) {
    address_text((const struct sockaddr *)&p->checked[i], text);
    buf_addf(&b, p->checked[i].ss_family == AF_INET6 ? "%s[%s]" : "%s%s", i ? "," : "", text);
  }
  p->resolve = curl_slist_append(NULL, buf_z(&b));
}

static bool check_addresses(struct post *p, const struct addrinfo *list)
{
  for (const struct addrinfo *a = list; a; a = a->ai_next) {
    if (a->ai_family != AF_INET && a->ai_family != AF_INET6)
      continue;
    if (!may_reach(p, a->ai_addr))
      return false;
    if (p->nchecked < ADDRESSES)
      memcpy(&p->checked[p->nchecked++], a->ai_addr, a->ai_addrlen);
  }
  return p->nchecked > 0;
}

static void resolved(struct lookup *l, int status, struct addrinfo *list)
{
  struct post *p = (struct post *)((char *)l - offsetof(struct post, lookup));
  char message[512];
  p->resolving = false;
  if (p->told || !p->posts->link) {
    post_free(p);
  } else if (status) {
    snprintf(message, sizeof(message), "%s does not resolve: %s", p->host, gai_strerror(status));
    give_up(p, DELIVERY_DNS, message);
  } else if (!check_addresses(p, list)) {
    give_up(p, DELIVERY_REQUEST, p->refused[0] ? p->refused : "the name has no address");
  } else {
    pin_addresses(p);
    transfer(p);
  }
  if (list)
    freeaddrinfo(list);
}

static void sweep(uv_timer_t *t)
{
  struct posts *ps = t->data;
  int64_t oldest = clock_mono_us() - (int64_t)ps->config->seconds * 1000000;
  for (struct post *p = ps->all, *next; p; p = next) {
    next = p->next;
    if (!p->resolving || p->told || p->began_us >= oldest)
      continue;
    p->resolving = !lookup_cancel(&ps->lookups, &p->lookup);
    give_up(p, DELIVERY_DNS, "the name was not resolved in time");
  }
}

static int resolve(struct post *p, struct str team)
{
  struct str host = str_of(p->host);
  if (host.n > 2 && host.p[0] == '[') /* libcurl gives IPv6 addresses in brackets */
    host = str_sub(host, 1, host.n - 2);
  if (str_copyz(host, p->lookup.name, sizeof(p->lookup.name)) ||
      str_copyz(str_of(p->port), p->lookup.port, sizeof(p->lookup.port)))
    return -ENAMETOOLONG;
  p->resolving = true;
  p->lookup.done = resolved;
  lookup_start(&p->posts->lookups, team, &p->lookup);
  return 0;
}

/* ---- the way in ---- */

static int read_url(struct post *p, struct str text)
{
  char *z = xstrndup(text.p ? text.p : "", text.n);
  p->url = curl_url();
  int bad = !p->url || curl_url_set(p->url, CURLUPART_URL, z, 0) || curl_url_get(p->url, CURLUPART_HOST, &p->host, 0) ||
            curl_url_get(p->url, CURLUPART_PORT, &p->port, CURLU_DEFAULT_PORT);
  free(z);
  return bad ? -EINVAL : 0;
}

static void read_headers(struct post *p, struct str lines)
{
  struct str line;
  while (lines.n) {
    str_cut(lines, '\n', &line, &lines);
    cleanup_free char *z = xstrndup(line.p, line.n);
    p->headers = curl_slist_append(p->headers, z);
  }
  p->headers = curl_slist_append(p->headers, "Expect:");
  p->headers = curl_slist_append(p->headers, "Accept: */*");
}

void post_start(struct posts *ps, struct str packet)
{
  struct post *p = xcalloc(1, sizeof(*p));
  *p = (struct post){.posts = ps,
                     .next = ps->all,
                     .at = &ps->all,
                     .began_us = clock_mono_us(),
                     .body = BUF_INIT(WIRE_MAX),
                     .answer = BUF_INIT(DELIVERY_KEPT)};
  if (ps->all)
    ps->all->at = &p->next;
  ps->all = p;
  wire_copyz(packet, W_ID, p->id, sizeof(p->id));
  read_headers(p, wire_get(packet, W_HEADERS));
  buf_adds(&p->body, wire_get(packet, W_BODY));
  if (read_url(p, wire_get(packet, W_URL)))
    give_up(p, DELIVERY_REQUEST, "the URL is not one that libcurl understands");
  else if (resolve(p, wire_get(packet, W_TEAM)))
    give_up(p, DELIVERY_REQUEST, "the name can't be looked up");
}

void posts_abandon(struct posts *ps)
{
  ps->link = NULL;
  for (struct post *p = ps->all, *next; p; p = next) {
    next = p->next;
    if (!p->resolving || lookup_cancel(&ps->lookups, &p->lookup))
      post_free(p);
    else
      p->told = true; /* nor does the next link want it */
  }
}

/* ---- authorities ---- */

static const char *const bundles[] = {"/etc/ssl/certs/ca-certificates.crt", "/etc/pki/tls/certs/ca-bundle.crt",
                                      "/etc/ssl/cert.pem"};

static int load_roots(struct posts *ps, struct err *err)
{
  bool any = false;
  ps->roots = X509_STORE_new();
  for (size_t i = 0; ps->roots && !any && i < ARRAY_LEN(bundles); i++)
    any = X509_STORE_load_file(ps->roots, bundles[i]) == 1;
  if (!any)
    log_warn("no certificates of authorities found; install ca-certificates for webhooks over https");
  if (ps->config->ca[0] && (!ps->roots || X509_STORE_load_file(ps->roots, ps->config->ca) != 1))
    return err_set(err, -EINVAL, "'webhook_ca': no certificate can be read from '%s'; name a PEM file", ps->config->ca);
  return 0;
}

int posts_open(struct posts *ps, struct err *err)
{
  if (curl_global_init(CURL_GLOBAL_DEFAULT) || !(ps->multi = curl_multi_init()))
    return err_set(err, -ENOMEM, "sender: libcurl does not start");
  ps->rules.private_allowed = ps->config->private_allowed;
  curl_multi_setopt(ps->multi, CURLMOPT_SOCKETFUNCTION, on_socket);
  curl_multi_setopt(ps->multi, CURLMOPT_SOCKETDATA, ps);
  curl_multi_setopt(ps->multi, CURLMOPT_TIMERFUNCTION, on_timer);
  curl_multi_setopt(ps->multi, CURLMOPT_TIMERDATA, ps);
  uv_timer_init(ps->loop, &ps->timer);
  uv_timer_init(ps->loop, &ps->sweeper);
  ps->timer.data = ps->sweeper.data = ps;
  uv_timer_start(&ps->sweeper, sweep, SWEEP_MS, SWEEP_MS);
  return load_roots(ps, err);
}
