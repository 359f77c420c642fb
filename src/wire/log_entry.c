/* SPDX-License-Identifier: Apache-2.0 */
/* log_entry.c - see log_entry.h. */
#include "wire/log_entry.h"

static const char *const levels[] = {"debug", "info", "warn", "error"};

int log_level_of(struct str word)
{
  for (int i = 0; i < (int)ARRAY_LEN(levels); i++)
    if (str_ieq(word, str_of(levels[i])))
      return i;
  return -1;
}

bool log_entry_read(struct arena *a, struct str text, struct log_entry *e)
{
  e->line = json_read(a, text, JSON_REPAIR_UTF8, NULL);
  int level = log_level_of(json_text(json_get(e->line, "l"), STR("info")));
  if (!json_is(e->line, JSON_OBJECT) || json_int(json_get(e->line, "t"), &e->at_us) || level < 0)
    return false;
  e->level = levels[level];
  e->message = json_text(json_get(e->line, "m"), STR(""));
  return true;
}

static void put_time(struct jw *w, int64_t us)
{
  char text[CLOCK_TEXT];
  clock_text(us, text);
  jw_key(w, "timestamp");
  jw_z(w, text);
}

/* Everything but time, level and message, as strings. */
static void put_fields(struct jw *w, const struct log_entry *e)
{
  for (const struct json *k = e->line->kids; k; k = k->next) {
    if (k->type != JSON_STRING || str_is(k->key, "l") || str_is(k->key, "m"))
      continue;
    jw_keys(w, str_is(k->key, "g") ? STR("logger") : k->key);
    jw_str(w, k->text);
  }
}

void log_entry_put(struct jw *w, const struct log_entry *e)
{
  jw_open(w, '{');
  put_time(w, e->at_us);
  jw_key(w, "level");
  jw_z(w, e->level);
  jw_key(w, "message");
  jw_str(w, e->message);
  jw_key(w, "fields");
  jw_open(w, '{');
  put_fields(w, e);
  jw_close(w, '}');
  jw_close(w, '}');
}

/* The first generation's line is itself the text of a JSON object. */
void log_entry_put_line(struct jw *w, const struct log_entry *e)
{
  cleanup_buf struct buf b = BUF_INIT(1 << 20);
  struct jw line = JW(&b);
  jw_open(&line, '{');
  jw_key(&line, "level");
  jw_z(&line, e->level);
  jw_key(&line, "message");
  jw_str(&line, e->message);
  put_fields(&line, e);
  jw_close(&line, '}');
  jw_open(w, '{');
  put_time(w, e->at_us);
  jw_key(w, "line");
  jw_str(w, buf_str(&b));
  jw_close(w, '}');
}
