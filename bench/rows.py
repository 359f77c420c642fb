# SPDX-License-Identifier: Apache-2.0
"""The rows of `make bench`: what is measured, what it should reach on two cores, and the floor beside it."""

from verdict import Floor, Row, Samples, p50


def _added(samples: Samples) -> float:
    return p50(samples, "http") - p50(samples, "floor_http_ms")


def _figure(samples: Samples) -> float:
    return p50(samples, "figure") / p50(samples, "figure_savefig")


def _cells(samples: Samples) -> float:
    return p50(samples, "run") / p50(samples, "floor_cell_ms")


def _crowded(samples: Samples) -> float:
    return p50(samples, "density_create") / p50(samples, "create")


def _answered(samples: Samples) -> float:
    return samples["density_answers"][0] / samples["density_boxes"][0]


def _volume_write(samples: Samples) -> float:
    return p50(samples, "volume_write") / p50(samples, "volume_disk_write")


def _volume_read(samples: Samples) -> float:
    return p50(samples, "volume_read") / p50(samples, "volume_disk_read")


def _sdk_c(samples: Samples) -> float:
    return p50(samples, "sdk_c_c_ms") / p50(samples, "sdk_c_raw_ms")


def _overhead(samples: Samples, language: str) -> float:
    """What our SDK adds to plain HTTP as a share of what the stock one adds."""
    raw = p50(samples, f"sdk_{language}_raw_ms")
    ours, stock = p50(samples, f"sdk_{language}_ours_ms") - raw, p50(samples, f"sdk_{language}_stock_ms") - raw
    return ours / stock


def _overhead_python(samples: Samples) -> float:
    return _overhead(samples, "python")


def _overhead_ts(samples: Samples) -> float:
    return _overhead(samples, "ts")


def _imported(samples: Samples) -> float:
    return p50(samples, "sdk_import_ours_ms") / p50(samples, "sdk_import_stock_ms")


def _hundred(samples: Samples) -> float:
    return 100e3 / p50(samples, "floor_box_per_second")


def _copy(samples: Samples) -> float:
    return p50(samples, "floor_criu_dump_ms") + p50(samples, "floor_criu_restore_ms")


# The number of a floor is what it was on the machine where the goals were set; of a range, the end that asks for more.
# Boxes of the bench have no way out, so that the floor of a launch is the clone without a veth.
CLONE = Floor("a bare clone: seven namespaces, overlay, pivot_root, exec", "floor_box_spaced_ms", 1.4)
TIGHT = Floor("the same, one right after the other", "floor_box_tight_ms")
CLONES = Floor("bare clones per second, two workers", "floor_box_per_second", 740)
HUNDRED = Floor("100 / bare clones per second, two workers", _hundred, 100e3 / 740)
FORK = Floor("fork of a loaded Python -> its first cell's result", "floor_fork_ms", 4.3)
PARKED = Floor("a parked fork is woken -> its first cell's result", "floor_parked_ms", 0.75)
PIPE = Floor("HTTP -> pipe -> run_cell, raw client", "floor_pipe_run", 0.57)
PIPE_SPACED = Floor("the same, 150 ms apart", "floor_pipe_run_spaced")
SDK = Floor("HTTP -> pipe -> run_cell, stock JS SDK", "floor_pipe_sdk_run_ms", 1.3)
SHELL = Floor("bash -l -c 'echo hi'", "floor_shell_ms")
SAVEFIG = Floor("savefig of the same figure, as a cell", "figure_savefig")
DUMP = Floor("criu dump of a bare process tree of 60 MB", "floor_criu_dump_ms", 90)
RESTORE = Floor("criu restore of it", "floor_criu_restore_ms", 64)
COPY = Floor("criu dump + restore of it", _copy, 90 + 64)
STREAM = Floor("one loopback TCP stream", "floor_tcp_gb_per_second")
VETH = Floor("connect from a bare namespace: veth, masquerading, no rules of ours", "floor_net_connect")
VETH_STREAM = Floor("one stream into that namespace", "floor_net_gb_per_second")
HTTPS = Floor("the same request without the gateway, on a kept connection", "floor_https_ms")
HTTPS_RATE = Floor("small answers without the gateway, 32 connections", "floor_https_rate")
TRIP = Floor("loopback TCP round trip", "floor_tcp_round_trip_ms", 0.05)
HTTP = Floor("our HTTP server and client, nothing between", "floor_http_ms")
PROXY = Floor("our HTTP proxy without routes, one core each", "floor_proxy_rate")

ROWS = [
    Row("create, ready box", "create", "ms", 2, floor=CLONE),
    Row("create, ready box, p99", "create", "ms", 10, part=0.99),
    Row("create, one after the other", "create_tight", "ms", floor=TIGHT),
    Row("create without a pool", "unpooled_create", "ms", 6, floor=CLONE, counts=True),
    Row("bare clone, three control groups, veth, for comparison", "floor_box_isolated_ms", "ms"),
    Row("create -> echo's output", "create_echo", "ms", 8, floor=SHELL),
    Row("create -> echo's output, no pool", "unpooled_create_echo", "ms", floor=SHELL),
    Row("create -> node -v's output", "create_node", "ms"),
    Row("create -> first cell", "create_run", "ms", 3, floor=PARKED, counts=True),
    Row("create -> first cell, no pool", "unpooled_create_run", "ms", 10, floor=FORK, counts=True),
    Row("1+1, warm, raw HTTP", "run", "ms", 0.8, floor=PIPE, counts=True),
    Row("  times run_cell in process", "", "x", 4, of=_cells),
    Row("1+1, warm, 150 ms apart", "run_spaced", "ms", floor=PIPE_SPACED),
    Row("1+1, warm, stock JS SDK", "sdk_js_run_ms", "ms", 1.6, floor=SDK, counts=True),
    Row("bare ipykernel, no HTTP, for comparison", "floor_ipykernel_ms", "ms"),
    Row("Sandbox.create, stock JS SDK", "sdk_js_create_ms", "ms"),
    Row("new Python context", "context", "ms", 5, floor=FORK, counts=True),
    Row("8 contexts in parallel", "contexts", "cells/s", 2500, more=True),
    Row("first byte of a print", "first_byte", "ms", 3),
    Row("10 MB in 1 KB prints", "output", "MB/s", 50, more=True),
    Row("figure with its chart", "figure", "ms", floor=SAVEFIG),
    Row("  times savefig", "", "x", 1.15, of=_figure),
    Row("100 creates at once, a numpy cell each", "burst", "ms", 600, floor=HUNDRED, counts=True, part=1.0),
    Row("  the same with 104 boxes ready", "ready_burst", "ms", 600, floor=HUNDRED, counts=True, part=1.0),
    Row("create + run + kill", "sustained", "per s", 150, more=True, floor=CLONES, counts=True),
    Row("create + run + kill, no pool", "unpooled_sustained", "per s", more=True, floor=CLONES),
    Row("idle boxes: PSS each", "density_pss", "MB", 6),
    Row("idle boxes: the host's memory each", "density_host_mb", "MB"),
    Row("idle boxes: create, times the usual", "", "x", 2, of=_crowded),
    Row("idle boxes: share that answers afterwards", "", "", 1, more=True, of=_answered),
    Row("pause, on disk, 40 MB of its own", "pause", "ms", 150, floor=DUMP, counts=True),
    Row("resume from disk", "resume", "ms", 80, floor=RESTORE, counts=True),
    Row("criu dump of a bare tree of 140 MB, for comparison", "floor_criu_large_dump_ms", "ms"),
    Row("criu restore of it, for comparison", "floor_criu_large_restore_ms", "ms"),
    Row("pause (frozen)", "frozen_pause", "ms", 3),
    Row("resume (frozen)", "frozen_resume", "ms", 3),
    Row("fork of a running box, one copy", "fork", "ms", 200, floor=COPY, counts=True),
    Row("  the copy's first cell", "fork_first_cell", "ms"),
    Row("rebuild of a template, all cached", "rebuild", "ms"),
    Row("rebuild, another last step", "rebuild_last", "ms", 2000),
    Row("rebuild with a start command, all cached", "rebuild_ready", "ms"),
    Row("rebuild with a start command, another last step", "rebuild_ready_last", "ms", 2000),
    Row("create from a ready template -> its server answers", "create_ready", "ms"),
    Row("upload", "upload", "GB/s", 1, more=True, floor=STREAM),
    Row("download", "download", "GB/s", 1, more=True, floor=STREAM),
    Row("volume: write, share of the box's own disk", "", "x", 0.9, more=True, of=_volume_write),
    Row("volume: read, share of the box's own disk", "", "x", 0.9, more=True, of=_volume_read),
    Row("volume: file in by HTTP", "content_upload", "GB/s", 1, more=True, floor=STREAM),
    Row("volume: file out by HTTP", "content_download", "GB/s", 1, more=True, floor=STREAM),
    Row("way out of a box, no network log: connect", "net_off_connect", "ms", floor=VETH),
    Row("  network log: names", "net_names_connect", "ms", floor=VETH),
    Row("  network log: full", "net_full_connect", "ms", floor=VETH),
    Row("way out of a box, no network log: a stream in", "net_off_gb_per_second", "GB/s", more=True, floor=VETH_STREAM),
    Row("  network log: names", "net_names_gb_per_second", "GB/s", more=True, floor=VETH_STREAM),
    Row("  network log: full", "net_full_gb_per_second", "GB/s", more=True, floor=VETH_STREAM),
    Row("egress gateway: added to a request of a rule's host", "gateway_added_ms", "ms", 1, floor=HTTPS),
    Row("egress gateway: small answers, 32 connections", "gateway_rate", "req/s", 5000, more=True, floor=HTTPS_RATE),
    Row("command: true", "command_true", "ms", floor=SHELL),
    Row("command: echo", "command_echo", "ms", floor=SHELL),
    Row("list of 10,000 entries", "list", "ms"),
    Row("HTTP into a box", "http", "ms", floor=HTTP),
    Row("  added to HTTP by itself", "", "ms", 0.15, floor=TRIP, counts=True, of=_added),
    Row("HTTP into a box, 32 connections", "http_rate", "req/s", 30000, more=True, floor=PROXY),
    Row("HTTP into a Node server in a box, 5,000 connections", "connections_rate", "req/s", more=True),
    Row("  the longest wait among them", "connections_wait", "ms", part=1.0),
    Row("loopback TCP round trip, for comparison", "floor_tcp_round_trip_ms", "ms"),
    Row("daemon, idle (PSS of all roles)", "daemon_pss", "MB", 20),
    Row("daemon, after all of this", "daemon_after", "MB"),
    Row("binary, stripped", "binary_mb", "MB", 5),
    Row("agent: PSS each", "agent_pss", "MB", 0.7),
]

# What bench/sdks.py measures.
SDK_ROWS = [
    Row("1+1 through libcloche", "sdk_c_c_ms", "ms"),
    Row("  times plain HTTP", "", "x", 1.15, of=_sdk_c),
    Row("1+1, our Python SDK", "sdk_python_ours_ms", "ms"),
    Row("  its overhead, times the stock SDK's", "", "x", 0.5, of=_overhead_python),
    Row("1+1, our TypeScript SDK", "sdk_ts_ours_ms", "ms"),
    Row("  its overhead, times the stock SDK's", "", "x", 0.5, of=_overhead_ts),
    Row("import of our Python SDK", "sdk_import_ours_ms", "ms"),
    Row("  times the stock one's", "", "x", 0.4, of=_imported),
    Row("TypeScript SDK, minified, loaded at the start", "sdk_bundle_kb", "kB", 60),
    Row("  with the chunks that calls load", "sdk_bundle_all_kb", "kB"),
    Row("libcloche.so, stripped", "sdk_library_kb", "kB", 250),
]
ROWS += SDK_ROWS
