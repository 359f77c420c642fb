/* SPDX-License-Identifier: Apache-2.0 */
/* messages.h - the messages of process.Process and filesystem.Filesystem as C structs, and their schemas.
 * Field numbers and names are in messages.c; the wire rules in rpc/schema.h. */
#ifndef CLOCHE_AGENT_ENVD_MESSAGES_H
#define CLOCHE_AGENT_ENVD_MESSAGES_H

#include "rpc/schema.h"

struct msg_empty {
  char none;
};

/* ---- process.Process ---- */

struct msg_size {
  uint32_t cols, rows;
};
struct msg_pty {
  struct msg_size *size;
};
struct msg_config {
  struct str cmd;
  struct rpc_list args; /* struct str */
  struct rpc_list envs; /* struct rpc_pair */
  struct str cwd;
  bool has_cwd;
};
struct msg_process {
  struct msg_config *config;
  uint32_t pid;
  struct str tag;
  bool has_tag;
};
struct msg_processes {
  struct rpc_list processes; /* struct msg_process * */
};
struct msg_start {
  struct msg_config *process;
  struct msg_pty *pty;
  struct str tag;
  bool has_tag, stdin_open, has_stdin;
};
enum { SELECT_PID = 1, SELECT_TAG = 2 };
struct msg_selector {
  uint32_t which, pid;
  struct str tag;
};
struct msg_started {
  uint32_t pid;
};
enum { DATA_STDOUT = 1, DATA_STDERR = 2, DATA_PTY = 3 };
struct msg_data {
  uint32_t which;
  struct str out, err, pty;
};
struct msg_end {
  int32_t exit_code;
  bool exited;
  struct str status, error;
  bool has_error;
};
enum { EVENT_START = 1, EVENT_DATA = 2, EVENT_END = 3, EVENT_KEEPALIVE = 4 };
struct msg_event {
  uint32_t which;
  struct msg_started *start;
  struct msg_data *data;
  struct msg_end *end;
  struct msg_empty *keepalive;
};
struct msg_event_response {
  struct msg_event *event;
};
struct msg_select {
  struct msg_selector *process;
};
struct msg_update {
  struct msg_selector *process;
  struct msg_pty *pty;
};
enum { INPUT_STDIN = 1, INPUT_PTY = 2 };
struct msg_input {
  uint32_t which;
  struct str in, pty;
};
struct msg_send_input {
  struct msg_selector *process;
  struct msg_input *input;
};
struct msg_stream_data {
  struct msg_input *input;
};
enum { STREAM_START = 1, STREAM_DATA = 2, STREAM_KEEPALIVE = 3 };
struct msg_stream_input {
  uint32_t which;
  struct msg_select *start;
  struct msg_stream_data *data;
  struct msg_empty *keepalive;
};
struct msg_signal {
  struct msg_selector *process;
  uint32_t signal;
};

extern const struct schema schema_empty, schema_processes, schema_start, schema_event, schema_select, schema_update,
    schema_send_input, schema_stream_input, schema_signal;

/* ---- filesystem.Filesystem ---- */

enum { ENTRY_UNSPECIFIED = 0, ENTRY_FILE = 1, ENTRY_DIRECTORY = 2, ENTRY_SYMLINK = 3 };
struct msg_entry {
  struct str name;
  uint32_t type;
  struct str path;
  int64_t size;
  uint32_t mode;
  struct str permissions, owner, group;
  struct rpc_time modified;
  struct str target;
  bool has_target;
  struct rpc_list metadata; /* struct rpc_pair */
  bool is_symlink;
};
struct msg_path {
  struct str path;
};
struct msg_entry_response {
  struct msg_entry *entry;
};
struct msg_move {
  struct str source, destination;
};
struct msg_list {
  struct str path;
  uint32_t depth;
};
struct msg_entries {
  struct rpc_list entries; /* struct msg_entry * */
};
struct msg_watch {
  struct str path;
  bool recursive, include_entry, allow_network_mounts;
};
enum { CHANGE_CREATE = 1, CHANGE_WRITE = 2, CHANGE_REMOVE = 3, CHANGE_RENAME = 4, CHANGE_CHMOD = 5 };
struct msg_change {
  struct str name;
  uint32_t type;
  struct msg_entry *entry;
};
enum { WATCH_START = 1, WATCH_CHANGE = 2, WATCH_KEEPALIVE = 3 };
struct msg_watch_event {
  uint32_t which;
  struct msg_empty *start;
  struct msg_change *change;
  struct msg_empty *keepalive;
};
struct msg_watcher {
  struct str id;
};
struct msg_changes {
  struct rpc_list events; /* struct msg_change * */
};

extern const struct schema schema_path, schema_entry_response, schema_move, schema_list, schema_entries, schema_watch,
    schema_watch_event, schema_watcher, schema_changes;

#endif
