# SPDX-License-Identifier: Apache-2.0
"""/metrics as Prometheus reads it: by the parsers of its own client, with series of boxes and teams within bounds."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from prometheus_client.openmetrics.parser import text_string_to_metric_families as read_openmetrics
from prometheus_client.parser import text_string_to_metric_families as read_text

from support.server import Server, own_server
from support.tenants import two_teams
from support.waiting import eventually
from support.wire import RawBox, Wire

OPENMETRICS = "application/openmetrics-text; version=1.0.0"
Series = dict[tuple[str, frozenset[tuple[str, str]]], float]


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with own_server("--metrics-boxes-max", "1", "--metrics-teams-max", "1", "--gates", "2") as made:
        yield made


@pytest.fixture(scope="module")
def other(server: Server) -> Wire:
    """A second team."""
    return two_teams(server).attacker


def told(server: Server) -> Series:
    families = list(read_text(server.figures()))
    return {(s.name, frozenset(s.labels.items())): s.value for f in families for s in f.samples}


def value(series: Series, name: str, **labels: str) -> float:
    return series.get((name, frozenset(labels.items())), 0)


def named(series: Series, name: str) -> list[dict[str, str]]:
    return [dict(labels) for known, labels in series if known == name]


def test_both_formats_are_read_by_the_parsers_of_prometheus(server: Server) -> None:
    plain = {f.name: f for f in read_text(server.figures())}
    headers = {"X-Admin-Token": server.admin, "Accept": f"{OPENMETRICS};q=0.5,text/plain;version=0.0.4;q=0.2"}
    answer = server.wire.call("GET", "/metrics", headers=headers, with_key=False)
    assert answer.headers["Content-Type"] == f"{OPENMETRICS}; charset=utf-8"
    assert answer.text.endswith("\n# EOF\n")
    strict = {f.name: f for f in read_openmetrics(answer.text)}
    assert set(strict) == set(plain)
    for name, family in strict.items():
        assert name.startswith("cloche_")
        assert family.documentation
        assert family.type in {"counter", "gauge", "histogram"}
        assert family.type == plain[name].type


def test_boxes_beyond_the_limit_are_told_together(server: Server, other: Wire) -> None:
    made: list[RawBox] = [server.wire.create(timeout=300), other.create(timeout=300), other.create(timeout=300)]
    try:
        made[0].run("head -c 20000000 /dev/zero > /tmp/x; md5sum /tmp/x")

        def sampled() -> Series | None:
            series = told(server)
            boxes = {labels["box"] for labels in named(series, "cloche_box_memory_bytes")}
            rest = value(series, "cloche_box_memory_limit_bytes", box="other", team="", template="")
            return series if len(boxes - {"other"}) == 1 and rest and len(boxes) == 2 else None

        series = eventually(sampled, state=server.figures)
        own = next(labels for labels in named(series, "cloche_box_memory_bytes") if labels["box"] != "other")
        assert own["box"] in {box.id for box in made}
        assert own["template"] == "base"
        assert value(series, "cloche_box_memory_bytes", **own) > 0
        assert value(series, "cloche_box_memory_limit_bytes", **own) >= 1 << 26
        assert value(series, "cloche_box_cpu_seconds_total", **own) > 0
        assert value(series, "cloche_box_state", **own, state="running") == 1
        limit = value(series, "cloche_box_memory_limit_bytes", **own)
        assert value(series, "cloche_box_memory_limit_bytes", box="other", team="", template="") == 2 * limit
    finally:
        for box in made:
            box.kill()
    eventually(lambda: not [x for x in named(told(server), "cloche_box_state") if x["box"] == own["box"]])


def test_the_first_team_has_its_own_numbers_and_the_second_is_other(server: Server, other: Wire) -> None:
    before = told(server)
    (team,) = {labels["team"] for labels in named(before, "cloche_team_creates_total")} - {"other"}
    first, second = server.wire.create("code-interpreter-v1", timeout=300), other.create(timeout=300)
    try:
        first.execute("1 + 1")
        first.execute("1 + 1")
        assert other.call("GET", "/sandboxes/nosuchbox").status == 404

        def grown(name: str, of: str, **labels: str) -> float:
            return value(after, name, team=of, **labels) - value(before, name, team=of, **labels)

        after = told(server)
        assert grown("cloche_team_creates_total", team) == 1
        assert grown("cloche_team_cells_total", team) == 2
        assert grown("cloche_team_creates_total", "other") == 1
        assert grown("cloche_team_cells_total", "other") == 0
        assert grown("cloche_team_errors_total", "other", side="client") == 1
        assert grown("cloche_team_errors_total", team, side="client") == 0
        assert value(after, "cloche_team_boxes", team=team, state="running") == 1
        assert value(after, "cloche_team_boxes", team="other", state="running") == 1
        assert server.wire.call("POST", f"/sandboxes/{first.id}/pause", {}).status == 204
        paused = told(server)
        assert value(paused, "cloche_team_boxes", team=team, state="paused") == 1
        assert value(paused, "cloche_team_storage_bytes", team=team) > 0
    finally:
        first.kill()
        second.kill()


def test_the_dashboard_asks_for_metrics_that_are_there(server: Server) -> None:
    board = json.loads((Path(__file__).resolve().parents[4] / "deploy/grafana-dashboard.json").read_text())
    asked = {target["expr"] for panel in board["panels"] for target in panel["targets"]}
    assert len(asked) > 20
    names = {name for expr in asked for name in re.findall(r"cloche_\w+", expr)}
    families = list(read_text(server.figures()))
    there = {f.name for f in families} | {s.name for f in families for s in f.samples}
    there |= {f"{f.name}_total" for f in families if f.type == "counter"}
    there |= {f"{f.name}_{end}" for f in families if f.type == "histogram" for end in ("bucket", "sum", "count")}
    assert names <= there, names - there
