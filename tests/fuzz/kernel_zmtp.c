/* SPDX-License-Identifier: Apache-2.0 */
/* A Jupyter kernel's bytes: any split of the input gives the same messages, and no message is read past its end. */
#include "agent/interpreter/jupyter_message.h"
#include "agent/interpreter/jupyter_zmtp.h"

static struct jupyter_session session;

/* A running hash of all frames with their lengths. */
static void on_message(void *arg, const struct str *frames, size_t n)
{
  struct sha256 *h = arg;
  struct jupyter_message m;
  sha256_add(h, &n, sizeof(n));
  for (size_t i = 0; i < n; i++) {
    sha256_add(h, &frames[i].n, sizeof(frames[i].n));
    sha256_add(h, frames[i].p, frames[i].n);
    (void)jupyter_member(frames[i], "msg_id");
  }
  if (jupyter_message_read(&session, frames, n, &m) == 0)
    abort(); /* nobody can sign with a key that was never told */
}

static int fed(struct str in, size_t step, uint8_t sum[SHA256_LEN])
{
  struct zmtp z;
  struct sha256 h;
  int rc = 0;
  sha256_init(&h);
  zmtp_init(&z, step & 1, "fuzz", on_message, &h);
  for (size_t i = 0; i < in.n && rc == 0; i += step)
    rc = zmtp_feed(&z, str_sub(in, i, step));
  zmtp_free(&z);
  sha256_end(&h, sum);
  return rc;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
  uint8_t whole[SHA256_LEN], parts[SHA256_LEN];
  if (size < 1)
    return 0;
  if (!session.key[0])
    jupyter_session_init(&session);
  struct str in = str_make(data + 1, size - 1);
  int a = fed(in, in.n + 1, whole), b = fed(in, data[0] % 97 + 1, parts);
  if (a != b || memcmp(whole, parts, sizeof(whole)) != 0)
    abort();
  return 0;
}
