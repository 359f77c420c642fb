/* SPDX-License-Identifier: Apache-2.0 */
/* tls_command.c - `cloche tls`: a private authority and a certificate for the server, for people without a public one.
 *
 * `init` keeps an authority that is there and only renews the certificate, so that clients need to trust once.
 * Everything is written to a file beside its place first and then moved there; a running server takes up the new one by
 * itself. */
#include "cli/cli.h"
#include "net/cert.h"
#include "wire/sizes.h"

#include <stdio.h>
#include <sys/stat.h>

#define NAMES_MAX 64
#define PUBLIC_CA "/etc/ssl/certs/ca-certificates.crt"

struct place {
  char dir[DATA_DIR_SIZE];
  char domain[254];
  const char *names[NAMES_MAX];
  size_t nnames;
  bool new_authority;
};

static void file_in(const struct place *p, const char *name, char out[DATA_PATH_SIZE])
{
  snprintf(out, DATA_PATH_SIZE, "%s/%s", p->dir, name);
}

static int help(FILE *to, int status)
{
  fputs("cloche tls - certificates for https\n\n"
        "Usage: cloche tls init [--domain NAME] [--dir DIR] [--name NAME]... [--new-authority]\n"
        "       cloche tls show [--dir DIR]\n\n"
        "init makes a private authority (ca.pem, ca-key.pem) unless DIR has one, and a certificate (cert.pem, key.pem) "
        "for\n"
        "*.NAME, NAME, localhost, 127.0.0.1, ::1 and each --name, and says what clients need to trust it.\n\n"
        "  --domain NAME    the domain under which boxes are reached [box.test]\n"
        "  --dir DIR        where the files are [/var/lib/cloche/tls]\n"
        "  --name NAME      one more host name or IP address\n"
        "  --new-authority  make a new authority even if there is one; clients must trust it anew\n",
        to);
  return status;
}

/* ---- files ---- */

static int keep(const struct place *p, const char *name, struct str text, unsigned mode, struct err *err)
{
  char path[DATA_PATH_SIZE];
  file_in(p, name, path);
  int r = file_write_atomic(path, text.p, text.n, mode);
  return r ? err_set(err, r, "%s: %s", path, strerrordesc_np(-r)) : 0;
}

static int fetch(const struct place *p, const char *name, struct buf *out, struct err *err)
{
  char path[DATA_PATH_SIZE];
  file_in(p, name, path);
  int r = file_read(path, out);
  return r ? err_set(err, r, "%s: %s", path, strerrordesc_np(-r)) : 0;
}

/* What Python's SSL_CERT_FILE wants: it replaces the public authorities, so they are in it too. */
static int keep_bundle(const struct place *p, struct str ca, struct err *err)
{
  cleanup_buf struct buf all = BUF_INIT(16 << 20);
  if (file_read(PUBLIC_CA, &all))
    buf_clear(&all);
  if (all.n && all.p[all.n - 1] != '\n')
    buf_addc(&all, '\n');
  buf_adds(&all, ca);
  return buf_failed(&all) ? err_set(err, -ENOBUFS, "%s is too large", PUBLIC_CA)
                          : keep(p, "ca-bundle.pem", buf_str(&all), 0644, err);
}

/* ---- words ---- */

static void print_environment(const struct place *p)
{
  printf("Start the server with it:\n\n"
         "  cloche serve --tls-listen 127.0.0.1:3443 --tls-cert %s/cert.pem --tls-key %s/key.pem\n\n"
         "Where clients run, for JavaScript and for Python (with the address of the server):\n\n"
         "  export NODE_EXTRA_CA_CERTS=%s/ca.pem\n"
         "  export SSL_CERT_FILE=%s/ca-bundle.pem\n"
         "  export E2B_API_URL=https://localhost:3443 E2B_SANDBOX_URL=https://localhost:3443\n",
         p->dir, p->dir, p->dir, p->dir);
  if (p->domain[0])
    printf("\nor, when *.%s is a name of the server in your DNS, instead of the two addresses:\n\n  export "
           "E2B_DOMAIN=%s:3443\n",
           p->domain, p->domain);
}

static int print_certificate(const struct place *p, const char *name, struct err *err)
{
  cleanup_buf struct buf pem = BUF_INIT(1 << 20);
  struct cert_facts facts;
  int r = fetch(p, name, &pem, err);
  r = r ? r : cert_look(buf_str(&pem), &facts, err);
  if (r)
    return r;
  printf("%s/%s\n  subject      %s\n  issuer       %s\n", p->dir, name, facts.subject, facts.issuer);
  if (facts.names[0])
    printf("  names        %s\n", facts.names);
  printf("  valid until  %s (%lld days)\n  SHA-256      %s\n\n", facts.until, (long long)facts.days_left,
         facts.fingerprint);
  return 0;
}

/* ---- sub-commands ---- */

static int have_authority(const struct place *p, struct cert *out, struct err *err)
{
  char path[DATA_PATH_SIZE];
  file_in(p, "ca-key.pem", path);
  if (p->new_authority || access(path, F_OK))
    return 0;
  int r = fetch(p, "ca.pem", &out->cert, err);
  r = r ? r : fetch(p, "ca-key.pem", &out->key, err);
  return r ? r : 1;
}

static int make(struct place *p, struct err *err)
{
  cleanup_cert struct cert authority = CERT_INIT, leaf = CERT_INIT;
  char wildcard[300];
  const char *names[NAMES_MAX + 8];
  size_t n = 0;
  int r = path_mkdirs(p->dir, 0755);
  if (r)
    return err_set(err, r, "%s: %s", p->dir, strerrordesc_np(-r));
  int had = have_authority(p, &authority, err);
  if (had < 0)
    return had;
  snprintf(wildcard, sizeof(wildcard), "*.%s", p->domain);
  names[n++] = wildcard;
  names[n++] = p->domain;
  names[n++] = "localhost";
  names[n++] = "127.0.0.1";
  names[n++] = "::1";
  for (size_t i = 0; i < p->nnames; i++)
    names[n++] = p->names[i];
  if (!had)
    r = cert_authority("Cloche private authority", &authority, err);
  r = r ? r : cert_leaf(&authority, names, n, &leaf, err);
  if (!r && !had) {
    r = keep(p, "ca-key.pem", buf_str(&authority.key), 0600, err);
    r = r ? r : keep(p, "ca.pem", buf_str(&authority.cert), 0644, err);
  }
  r = r ? r : keep_bundle(p, buf_str(&authority.cert), err);
  r = r ? r : keep(p, "key.pem", buf_str(&leaf.key), 0600, err);
  return r ? r : keep(p, "cert.pem", buf_str(&leaf.cert), 0644, err);
}

static int init(struct place *p, struct err *err)
{
  int r = make(p, err);
  r = r ? r : print_certificate(p, "ca.pem", err);
  r = r ? r : print_certificate(p, "cert.pem", err);
  if (!r)
    print_environment(p);
  return r;
}

static int show(struct place *p, struct err *err)
{
  int r = print_certificate(p, "ca.pem", err);
  r = r ? r : print_certificate(p, "cert.pem", err);
  p->domain[0] = 0;
  if (!r)
    print_environment(p);
  return r;
}

/* One option with its value; how many words it took, or 0. */
static int take_option(struct place *p, int argc, char **argv)
{
  if (!strcmp(argv[0], "--new-authority")) {
    p->new_authority = true;
    return 1;
  }
  if (argc < 2)
    return 0;
  if (!strcmp(argv[0], "--dir"))
    return str_copyz(str_of(argv[1]), p->dir, sizeof(p->dir)) ? 0 : 2;
  if (!strcmp(argv[0], "--domain"))
    return str_copyz(str_of(argv[1]), p->domain, sizeof(p->domain)) ? 0 : 2;
  if (!strcmp(argv[0], "--name") && p->nnames < NAMES_MAX) {
    p->names[p->nnames++] = argv[1];
    return 2;
  }
  return 0;
}

int tls_main(int argc, char **argv)
{
  static struct place p = {.dir = "/var/lib/cloche/tls", .domain = "box.test"};
  struct err err = ERR_NONE;
  bool making = argc > 1 && !strcmp(argv[1], "init");
  for (int i = 1; i < argc; i++)
    if (!strcmp(argv[i], "--help") || !strcmp(argv[i], "-h"))
      return help(stdout, 0);
  if (argc < 2 || (!making && strcmp(argv[1], "show")))
    return help(stderr, 2);
  for (int i = 2, k; i < argc; i += k)
    if (!(k = take_option(&p, argc - i, argv + i)))
      return usage_error("tls %s: '%s' is not an option, or its value is missing or too long", argv[1], argv[i]);
  if (making ? init(&p, &err) : show(&p, &err)) {
    fprintf(stderr, "cloche: %s\n", err.msg);
    return 1;
  }
  return 0;
}
