/* SPDX-License-Identifier: Apache-2.0 */
/* agent.c - the agent's state: who may call, and with which variables processes start. */
#include "agent/agent.h"

void agent_envs(const struct agent *a, struct env *out)
{
  env_merge(out, &a->template_env);
  env_merge(out, &a->trust_env);
  env_merge(out, &a->init_env);
  env_merge(out, &a->internal);
}

bool agent_token_ok(const struct agent *a, struct str given)
{
  return !a->token || (given.p && str_eq_secret(given, str_of(a->token)));
}

int agent_basic_user(struct str authorization, struct buf *out)
{
  cleanup_buf struct buf pair = BUF_INIT(64 << 10);
  struct str name, password;
  if (!str_istarts(authorization, STR("Basic ")))
    return 0;
  if (base64_decode(str_trim(str_skip(authorization, 6)), &pair) < 0)
    return 0;
  if (!str_cut(buf_str(&pair), ':', &name, &password))
    return 0;
  buf_clear(out);
  buf_adds(out, name);
  return 1;
}
