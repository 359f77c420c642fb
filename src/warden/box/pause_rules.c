/* SPDX-License-Identifier: Apache-2.0 */
/* pause_rules.c - see pause_rules.h. */
#include "warden/box/pause_rules.h"

static bool changes(enum box_state state)
{
  return state == BOX_PAUSING || state == BOX_RESUMING || state == BOX_COPYING;
}

/* ---- pause ---- */

enum verdict pause_verdict(enum box_state state, struct asked asked)
{
  if (changes(state))
    return VERDICT_WAIT;
  if (state == BOX_PAUSED)
    return asked.again || asked.waited ? VERDICT_DONE : VERDICT_ALREADY;
  return state == BOX_RUNNING ? VERDICT_BEGIN : VERDICT_STARTING;
}

enum transition_op pause_op(bool without_memory, bool checkpoints_on)
{
  if (without_memory)
    return TRANSITION_STOP;
  return checkpoints_on ? TRANSITION_DUMP : TRANSITION_FREEZE;
}

enum verdict expire_verdict(enum box_state state, unsigned flags)
{
  if (!(flags & BOX_AUTO_PAUSE))
    return VERDICT_END;
  return state == BOX_RUNNING ? VERDICT_BEGIN : state == BOX_COPYING ? VERDICT_WAIT : VERDICT_END;
}

bool expire_without_memory(unsigned flags)
{
  return (flags & BOX_AUTO_COLD) != 0;
}

/* ---- connect and resume ---- */

bool connect_resumed(enum connect_mode mode, struct asked asked)
{
  return mode == CONNECT_RESUME && (asked.again || asked.joined);
}

static enum verdict connect_running(enum connect_mode mode, struct asked asked)
{
  if (mode == CONNECT_CONNECT)
    return VERDICT_EXTEND;
  if (mode != CONNECT_RESUME || asked.again)
    return VERDICT_DONE;
  return asked.joined ? VERDICT_EXTEND : VERDICT_ALREADY;
}

static bool may_resume(struct connect_facts box, enum connect_mode mode)
{
  if (mode == CONNECT_TRAFFIC) /* traffic starts nothing cold: the service that it is meant for would not run */
    return (box.flags & (BOX_AUTO_RESUME | BOX_AGENT_SILENT)) == BOX_AUTO_RESUME && box.tier != TIER_FILES;
  return mode != CONNECT_JOIN;
}

enum verdict connect_verdict(struct connect_facts box, enum connect_mode mode, struct asked asked)
{
  if (changes(box.state) || (box.state == BOX_PAUSED && box.busy))
    return VERDICT_WAIT;
  if (box.state == BOX_PAUSED)
    return !may_resume(box, mode)                        ? VERDICT_PAUSED
           : (box.flags & BOX_AGENT_SILENT) && !box.cold ? VERDICT_SILENT
                                                         : VERDICT_BEGIN;
  return box.state == BOX_RUNNING ? connect_running(mode, asked) : VERDICT_STARTING;
}

enum transition_op resume_op(bool without_memory, enum box_tier tier)
{
  if (without_memory || tier == TIER_FILES)
    return TRANSITION_COLD;
  return tier == TIER_CHECKPOINT ? TRANSITION_RESTORE : TRANSITION_THAW;
}

uint32_t resume_timeout(enum connect_mode mode, uint32_t asked_s, uint32_t box_s, uint32_t most_s)
{
  return mode == CONNECT_TRAFFIC ? MIN(MAX(WAKE_LEAST_S, box_s), most_s) : asked_s;
}

int64_t extended_end(int64_t now_us, uint32_t timeout_s, int64_t started_us, uint32_t most_s, int64_t end_us)
{
  int64_t last = started_us + (int64_t)most_s * 1000000;
  return MAX(MIN(now_us + (int64_t)timeout_s * 1000000, last), end_us);
}

/* ---- copies ---- */

enum verdict copy_accepted(enum box_state state)
{
  if (state == BOX_PAUSED || state == BOX_PAUSING)
    return VERDICT_PAUSED;
  return state == BOX_STARTING || state == BOX_ENDED ? VERDICT_STARTING : VERDICT_BEGIN;
}

enum verdict copy_verdict(enum box_state state)
{
  if (changes(state))
    return VERDICT_WAIT;
  return state == BOX_RUNNING ? VERDICT_BEGIN : VERDICT_PAUSED;
}
