/* SPDX-License-Identifier: Apache-2.0 */
/* tag_history.c - see tag_history.h. The deletions are store.c's, beside those of tags. */
#include "warden/db/tag_history.h"

#include "warden/db/store_sql.h"

int tag_history_add(struct store *s, const char *template_id, const char *tag, const char *build, int64_t when_us,
                    struct err *err)
{
  char id[UUID_TEXT];
  uuid4(id);
  int r = sql_change(s, err, "INSERT INTO tag_event(id,template,tag,build,at) VALUES(?,?,?,?,?)", "tttti", id,
                     template_id, tag, build, when_us);
  return r ? r
           : sql_change(s, err,
                        "DELETE FROM tag_event WHERE template=? AND tag=? AND id NOT IN (SELECT id FROM tag_event "
                        "WHERE template=? AND tag=? ORDER BY at DESC, id LIMIT ?)",
                        "tttti", template_id, tag, template_id, tag, (int64_t)TAG_HISTORY_MAX);
}

void tag_history_each(struct store *s, const char *template_id, void (*fn)(const struct tag_event *e, void *arg),
                      void *arg)
{
  struct sql_rows *st =
      sql_query(s, "SELECT id,tag,build,at FROM tag_event WHERE template=? ORDER BY at DESC, id LIMIT ?", "ti",
                template_id, (int64_t)TAG_HISTORY_TOLD);
  SQL_EACH_ROW(st)
  {
    struct tag_event e = {sql_str(st, 0), sql_str(st, 1), sql_str(st, 2), sql_int(st, 3)};
    fn(&e, arg);
  }
  sql_done(st);
}
