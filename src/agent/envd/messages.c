/* SPDX-License-Identifier: Apache-2.0 */
/* messages.c - field numbers and names of both services. */
#include "agent/envd/messages.h"

#define FIELD(st, member, num, ft, json, orig)                                                                         \
  {                                                                                                                    \
    .number = (num), .type = (ft), .rule = FR_PLAIN, .offset = offsetof(struct st, member), .name = (json),            \
    .snake = (orig)                                                                                                    \
  }
#define FIELD_OPT(st, member, has, num, ft, json, orig)                                                                \
  {                                                                                                                    \
    .number = (num), .type = (ft), .rule = FR_OPTIONAL, .offset = offsetof(struct st, member),                         \
    .mark = offsetof(struct st, has), .name = (json), .snake = (orig)                                                  \
  }
#define FIELD_ONE(st, member, num, ft, json)                                                                           \
  {                                                                                                                    \
    .number = (num), .type = (ft), .rule = FR_ONEOF, .offset = offsetof(struct st, member),                            \
    .mark = offsetof(struct st, which), .name = (json), .snake = (json)                                                \
  }
#define FIELD_MSG(st, member, num, sub, json)                                                                          \
  {                                                                                                                    \
    .number = (num), .type = FT_MESSAGE, .rule = FR_PLAIN, .offset = offsetof(struct st, member), .name = (json),      \
    .snake = (json), .message = &(sub)                                                                                 \
  }
#define FIELD_ONE_MSG(st, member, num, sub, json)                                                                      \
  {                                                                                                                    \
    .number = (num), .type = FT_MESSAGE, .rule = FR_ONEOF, .offset = offsetof(struct st, member),                      \
    .mark = offsetof(struct st, which), .name = (json), .snake = (json), .message = &(sub)                             \
  }
#define FIELD_LIST(st, member, num, ft, sub, json)                                                                     \
  {                                                                                                                    \
    .number = (num), .type = (ft), .rule = FR_REPEATED, .offset = offsetof(struct st, member), .name = (json),         \
    .snake = (json), .message = (sub)                                                                                  \
  }
#define FIELD_ENUM(st, member, num, names, json)                                                                       \
  {                                                                                                                    \
    .number = (num), .type = FT_ENUM, .rule = FR_PLAIN, .offset = offsetof(struct st, member), .name = (json),         \
    .snake = (json), .enums = (names)                                                                                  \
  }

#define SCHEMA(var, title, st, ...)                                                                                    \
  static const struct field var##_fields[] = {__VA_ARGS__};                                                            \
  static const struct schema var = {(title), var##_fields, ARRAY_LEN(var##_fields), sizeof(struct st)}
#define SCHEMA_PUBLIC(var, title, st, ...)                                                                             \
  static const struct field var##_fields[] = {__VA_ARGS__};                                                            \
  const struct schema var = {(title), var##_fields, ARRAY_LEN(var##_fields), sizeof(struct st)}

const struct schema schema_empty = {"Empty", NULL, 0, sizeof(struct msg_empty)};

/* ---- process.Process ---- */

static const struct enum_name signal_names[] = {
    {0, "SIGNAL_UNSPECIFIED"}, {9, "SIGNAL_SIGKILL"}, {15, "SIGNAL_SIGTERM"}, {0, NULL}};

SCHEMA(schema_size, "PTY.Size", msg_size, FIELD(msg_size, cols, 1, FT_UINT32, "cols", "cols"),
       FIELD(msg_size, rows, 2, FT_UINT32, "rows", "rows"));
SCHEMA(schema_pty, "PTY", msg_pty, FIELD_MSG(msg_pty, size, 1, schema_size, "size"));
SCHEMA(schema_config, "ProcessConfig", msg_config, FIELD(msg_config, cmd, 1, FT_STRING, "cmd", "cmd"),
       FIELD_LIST(msg_config, args, 2, FT_STRING, NULL, "args"), FIELD(msg_config, envs, 3, FT_MAP, "envs", "envs"),
       FIELD_OPT(msg_config, cwd, has_cwd, 4, FT_STRING, "cwd", "cwd"));
SCHEMA(schema_process, "ProcessInfo", msg_process, FIELD_MSG(msg_process, config, 1, schema_config, "config"),
       FIELD(msg_process, pid, 2, FT_UINT32, "pid", "pid"),
       FIELD_OPT(msg_process, tag, has_tag, 3, FT_STRING, "tag", "tag"));
SCHEMA_PUBLIC(schema_processes, "ListResponse", msg_processes,
              FIELD_LIST(msg_processes, processes, 1, FT_MESSAGE, &schema_process, "processes"));
SCHEMA_PUBLIC(schema_start, "StartRequest", msg_start, FIELD_MSG(msg_start, process, 1, schema_config, "process"),
              FIELD_MSG(msg_start, pty, 2, schema_pty, "pty"),
              FIELD_OPT(msg_start, tag, has_tag, 3, FT_STRING, "tag", "tag"),
              FIELD_OPT(msg_start, stdin_open, has_stdin, 4, FT_BOOL, "stdin", "stdin"));
SCHEMA(schema_selector, "ProcessSelector", msg_selector, FIELD_ONE(msg_selector, pid, SELECT_PID, FT_UINT32, "pid"),
       FIELD_ONE(msg_selector, tag, SELECT_TAG, FT_STRING, "tag"));
SCHEMA(schema_started, "ProcessEvent.StartEvent", msg_started, FIELD(msg_started, pid, 1, FT_UINT32, "pid", "pid"));
SCHEMA(schema_data, "ProcessEvent.DataEvent", msg_data, FIELD_ONE(msg_data, out, DATA_STDOUT, FT_BYTES, "stdout"),
       FIELD_ONE(msg_data, err, DATA_STDERR, FT_BYTES, "stderr"), FIELD_ONE(msg_data, pty, DATA_PTY, FT_BYTES, "pty"));
SCHEMA(schema_end, "ProcessEvent.EndEvent", msg_end, FIELD(msg_end, exit_code, 1, FT_SINT32, "exitCode", "exit_code"),
       FIELD(msg_end, exited, 2, FT_BOOL, "exited", "exited"), FIELD(msg_end, status, 3, FT_STRING, "status", "status"),
       FIELD_OPT(msg_end, error, has_error, 4, FT_STRING, "error", "error"));
SCHEMA(schema_process_event, "ProcessEvent", msg_event,
       FIELD_ONE_MSG(msg_event, start, EVENT_START, schema_started, "start"),
       FIELD_ONE_MSG(msg_event, data, EVENT_DATA, schema_data, "data"),
       FIELD_ONE_MSG(msg_event, end, EVENT_END, schema_end, "end"),
       FIELD_ONE_MSG(msg_event, keepalive, EVENT_KEEPALIVE, schema_empty, "keepalive"));
SCHEMA_PUBLIC(schema_event, "StartResponse", msg_event_response,
              FIELD_MSG(msg_event_response, event, 1, schema_process_event, "event"));
SCHEMA_PUBLIC(schema_select, "ConnectRequest", msg_select,
              FIELD_MSG(msg_select, process, 1, schema_selector, "process"));
SCHEMA_PUBLIC(schema_update, "UpdateRequest", msg_update, FIELD_MSG(msg_update, process, 1, schema_selector, "process"),
              FIELD_MSG(msg_update, pty, 2, schema_pty, "pty"));
SCHEMA(schema_input, "ProcessInput", msg_input, FIELD_ONE(msg_input, in, INPUT_STDIN, FT_BYTES, "stdin"),
       FIELD_ONE(msg_input, pty, INPUT_PTY, FT_BYTES, "pty"));
SCHEMA_PUBLIC(schema_send_input, "SendInputRequest", msg_send_input,
              FIELD_MSG(msg_send_input, process, 1, schema_selector, "process"),
              FIELD_MSG(msg_send_input, input, 2, schema_input, "input"));
SCHEMA(schema_stream_data, "StreamInputRequest.DataEvent", msg_stream_data,
       FIELD_MSG(msg_stream_data, input, 2, schema_input, "input"));
SCHEMA_PUBLIC(schema_stream_input, "StreamInputRequest", msg_stream_input,
              FIELD_ONE_MSG(msg_stream_input, start, STREAM_START, schema_select, "start"),
              FIELD_ONE_MSG(msg_stream_input, data, STREAM_DATA, schema_stream_data, "data"),
              FIELD_ONE_MSG(msg_stream_input, keepalive, STREAM_KEEPALIVE, schema_empty, "keepalive"));
SCHEMA_PUBLIC(schema_signal, "SendSignalRequest", msg_signal,
              FIELD_MSG(msg_signal, process, 1, schema_selector, "process"),
              FIELD_ENUM(msg_signal, signal, 2, signal_names, "signal"));

/* ---- filesystem.Filesystem ---- */

static const struct enum_name type_names[] = {{ENTRY_UNSPECIFIED, "FILE_TYPE_UNSPECIFIED"},
                                              {ENTRY_FILE, "FILE_TYPE_FILE"},
                                              {ENTRY_DIRECTORY, "FILE_TYPE_DIRECTORY"},
                                              {ENTRY_SYMLINK, "FILE_TYPE_SYMLINK"},
                                              {0, NULL}};
static const struct enum_name change_names[] = {{0, "EVENT_TYPE_UNSPECIFIED"},
                                                {CHANGE_CREATE, "EVENT_TYPE_CREATE"},
                                                {CHANGE_WRITE, "EVENT_TYPE_WRITE"},
                                                {CHANGE_REMOVE, "EVENT_TYPE_REMOVE"},
                                                {CHANGE_RENAME, "EVENT_TYPE_RENAME"},
                                                {CHANGE_CHMOD, "EVENT_TYPE_CHMOD"},
                                                {0, NULL}};

SCHEMA(schema_entry, "EntryInfo", msg_entry, FIELD(msg_entry, name, 1, FT_STRING, "name", "name"),
       FIELD_ENUM(msg_entry, type, 2, type_names, "type"), FIELD(msg_entry, path, 3, FT_STRING, "path", "path"),
       FIELD(msg_entry, size, 4, FT_INT64, "size", "size"), FIELD(msg_entry, mode, 5, FT_UINT32, "mode", "mode"),
       FIELD(msg_entry, permissions, 6, FT_STRING, "permissions", "permissions"),
       FIELD(msg_entry, owner, 7, FT_STRING, "owner", "owner"), FIELD(msg_entry, group, 8, FT_STRING, "group", "group"),
       FIELD(msg_entry, modified, 9, FT_TIME, "modifiedTime", "modified_time"),
       FIELD_OPT(msg_entry, target, has_target, 10, FT_STRING, "symlinkTarget", "symlink_target"),
       FIELD(msg_entry, metadata, 11, FT_MAP, "metadata", "metadata"),
       FIELD(msg_entry, is_symlink, 12, FT_BOOL, "isSymlink", "is_symlink"));
SCHEMA_PUBLIC(schema_path, "StatRequest", msg_path, FIELD(msg_path, path, 1, FT_STRING, "path", "path"));
SCHEMA_PUBLIC(schema_entry_response, "StatResponse", msg_entry_response,
              FIELD_MSG(msg_entry_response, entry, 1, schema_entry, "entry"));
SCHEMA_PUBLIC(schema_move, "MoveRequest", msg_move, FIELD(msg_move, source, 1, FT_STRING, "source", "source"),
              FIELD(msg_move, destination, 2, FT_STRING, "destination", "destination"));
SCHEMA_PUBLIC(schema_list, "ListDirRequest", msg_list, FIELD(msg_list, path, 1, FT_STRING, "path", "path"),
              FIELD(msg_list, depth, 2, FT_UINT32, "depth", "depth"));
SCHEMA_PUBLIC(schema_entries, "ListDirResponse", msg_entries,
              FIELD_LIST(msg_entries, entries, 1, FT_MESSAGE, &schema_entry, "entries"));
SCHEMA_PUBLIC(schema_watch, "WatchDirRequest", msg_watch, FIELD(msg_watch, path, 1, FT_STRING, "path", "path"),
              FIELD(msg_watch, recursive, 2, FT_BOOL, "recursive", "recursive"),
              FIELD(msg_watch, include_entry, 3, FT_BOOL, "includeEntry", "include_entry"),
              FIELD(msg_watch, allow_network_mounts, 4, FT_BOOL, "allowNetworkMounts", "allow_network_mounts"));
SCHEMA(schema_change, "FilesystemEvent", msg_change, FIELD(msg_change, name, 1, FT_STRING, "name", "name"),
       FIELD_ENUM(msg_change, type, 2, change_names, "type"), FIELD_MSG(msg_change, entry, 3, schema_entry, "entry"));
SCHEMA_PUBLIC(schema_watch_event, "WatchDirResponse", msg_watch_event,
              FIELD_ONE_MSG(msg_watch_event, start, WATCH_START, schema_empty, "start"),
              FIELD_ONE_MSG(msg_watch_event, change, WATCH_CHANGE, schema_change, "filesystem"),
              FIELD_ONE_MSG(msg_watch_event, keepalive, WATCH_KEEPALIVE, schema_empty, "keepalive"));
SCHEMA_PUBLIC(schema_watcher, "CreateWatcherResponse", msg_watcher,
              FIELD(msg_watcher, id, 1, FT_STRING, "watcherId", "watcher_id"));
SCHEMA_PUBLIC(schema_changes, "GetWatcherEventsResponse", msg_changes,
              FIELD_LIST(msg_changes, events, 1, FT_MESSAGE, &schema_change, "events"));
