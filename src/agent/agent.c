/* agent.c - the agent's state: who may call, and with which variables processes start. */
#include "agent/agent.h"

void agent_envs(const struct agent *a, struct env *out)
{
  env_merge(out, &a->template_env);
  env_merge(out, &a->init_env);
  env_merge(out, &a->internal);
}

bool agent_token_ok(const struct agent *a, struct str given)
{
  return !a->token || (given.p && str_eq_secret(given, str_of(a->token)));
}
