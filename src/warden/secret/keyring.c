/* SPDX-License-Identifier: Apache-2.0 */
/* keyring.c - see keyring.h. */
#include "warden/secret/keyring.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#define CREDENTIAL "cloche-secrets-key"
#define TEXT_MAX   4096

static bool is_space(char c)
{
  return c == ' ' || c == '\n' || c == '\r' || c == '\t';
}

/* The next word of the text; empty: there is none. */
static struct str next_word(struct str *text)
{
  while (text->n && is_space(text->p[0]))
    *text = str_skip(*text, 1);
  size_t n = 0;
  while (n < text->n && !is_space(text->p[n]))
    n++;
  struct str word = str_sub(*text, 0, n);
  *text = str_skip(*text, n);
  return word;
}

int keyring_parse(struct keyring *k, struct str text, struct err *err)
{
  uint8_t raw[MASTER_KEY_LEN];
  k->n = 0;
  for (struct str word; (word = next_word(&text)).n;) {
    if (k->n == KEYRING_MAX)
      return k->n = 0, err_set(err, -E2BIG, "%s holds more than %d keys; leave out the oldest", k->path, KEYRING_MAX);
    if (word.n != 2 * sizeof(raw) || hex_decode(word, raw, sizeof(raw)))
      return k->n = 0, err_set(err, -EINVAL, "%s: key %zu is not 64 hex digits; `openssl rand -hex 32` makes a key",
                               k->path, k->n + 1);
    master_key_set(&k->keys[k->n++], raw);
  }
  wipe(raw, sizeof(raw));
  return k->n ? 0 : err_set(err, -EINVAL, "%s is empty; it must hold a key, 64 hex digits", k->path);
}

static int read_file(struct keyring *k, struct err *err)
{
  cleanup_wipe struct buf b = BUF_INIT(TEXT_MAX);
  struct stat st;
  k->n = 0;
  cleanup_fd int fd = open(k->path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
  if (fd < 0 || fstat(fd, &st))
    return err_errno(err, "%s", k->path);
  if (!S_ISREG(st.st_mode))
    return err_set(err, -EINVAL, "%s is not a regular file", k->path);
  if (st.st_mode & 0077 && k->source == KEY_OF_FILE)
    return err_set(err, -EPERM, "%s has mode %03o, so that others may have read it; chmod 600 it", k->path,
                   (unsigned)st.st_mode & 0777);
  if (buf_reserve(&b, MIN((size_t)st.st_size + 1, (size_t)TEXT_MAX)))
    return err_set(err, -ENOMEM, "%s: no memory", k->path);
  int r = fd_read_all(fd, &b);
  return r ? err_set(err, r, "%s: %s", k->path, strerrordesc_np(-r)) : keyring_parse(k, buf_str(&b), err);
}

static int read_variable(struct keyring *k, char *value, struct err *err)
{
  k->source = KEY_OF_VARIABLE;
  snprintf(k->path, sizeof(k->path), "the variable %s", KEYRING_VARIABLE);
  int r = keyring_parse(k, str_of(value), err);
  wipe(value, strlen(value)); /* where /proc shows it */
  unsetenv(KEYRING_VARIABLE);
  return r;
}

int keyring_read(struct keyring *k, const char *file, struct err *err)
{
  char *value = getenv(KEYRING_VARIABLE);
  const char *credentials = getenv("CREDENTIALS_DIRECTORY");
  if (value && value[0])
    return read_variable(k, value, err);
  if (k->source == KEY_OF_VARIABLE)
    return k->n ? 0 : err_set(err, -EINVAL, "%s holds no keys; start the server with the right ones", k->path);
  if (credentials && credentials[0]) {
    snprintf(k->path, sizeof(k->path), "%s/" CREDENTIAL, credentials);
    k->source = KEY_OF_CREDENTIAL;
    if (!access(k->path, F_OK))
      return read_file(k, err);
  }
  k->source = KEY_OF_FILE;
  snprintf(k->path, sizeof(k->path), "%s", file);
  return read_file(k, err);
}

static int sync_dir_of(const char *path)
{
  char dir[DATA_PATH_SIZE];
  ptrdiff_t slash = str_rfind(str_of(path), '/');
  if (slash < 0 || str_copyz(str_sub(str_of(path), 0, (size_t)MAX(slash, (ptrdiff_t)1)), dir, sizeof(dir)))
    return -EINVAL;
  cleanup_fd int fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  return fd < 0 || fsync(fd) ? -errno : 0;
}

static int write_file(const struct keyring *k, struct err *err)
{
  cleanup_wipe struct buf b = BUF_INIT(TEXT_MAX);
  char text[2 * MASTER_KEY_LEN + 1];
  int r = buf_reserve(&b, TEXT_MAX - 1);
  for (size_t i = 0; i < k->n; i++) {
    hex_encode(k->keys[i].key, MASTER_KEY_LEN, text);
    buf_addz(&b, text);
    buf_addc(&b, '\n');
  }
  wipe(text, sizeof(text));
  r = r ? r : buf_failed(&b);
  r = r ? r : file_write_atomic(k->path, b.p, b.n, 0600);
  r = r ? r : sync_dir_of(k->path);
  return r ? err_set(err, r, "%s can't be written: %s", k->path, strerrordesc_np(-r)) : 0;
}

int keyring_add(struct keyring *k, struct err *err)
{
  uint8_t raw[MASTER_KEY_LEN];
  struct keyring more = *k;
  if (k->source != KEY_OF_FILE)
    return err_set(err, -EROFS,
                   "the master key is given by %s, which the server can't write: put a new key (openssl rand -hex 32) "
                   "in front of the old one there and start the server again",
                   k->path);
  if (k->n == KEYRING_MAX)
    return err_set(err, -E2BIG, "%s holds %d keys already; an earlier rotation has not ended, see the server's log",
                   k->path, KEYRING_MAX);
  random_bytes(raw, sizeof(raw));
  memmove(&more.keys[1], &more.keys[0], k->n * sizeof(k->keys[0]));
  master_key_set(&more.keys[0], raw);
  more.n++;
  int r = write_file(&more, err);
  if (!r)
    *k = more;
  wipe(raw, sizeof(raw));
  keyring_wipe(&more);
  return r;
}

int keyring_drop_old(struct keyring *k, struct err *err)
{
  struct keyring less = *k;
  if (k->source != KEY_OF_FILE)
    return err_set(err, -EROFS, "%s can't be written by the server", k->path);
  less.n = 1;
  wipe(&less.keys[1], sizeof(less.keys) - sizeof(less.keys[0]));
  int r = write_file(&less, err);
  if (!r)
    *k = less;
  keyring_wipe(&less);
  return r;
}

const struct master_key *keyring_find(const struct keyring *k, const char *id)
{
  for (size_t i = 0; i < k->n; i++)
    if (!strcmp(k->keys[i].id, id))
      return &k->keys[i];
  return NULL;
}

void keyring_wipe(struct keyring *k)
{
  wipe(k->keys, sizeof(k->keys));
  k->n = 0;
}
