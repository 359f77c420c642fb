# SPDX-License-Identifier: Apache-2.0
"""Which answers of the control plane are asked for once more."""

from __future__ import annotations

import json
import time
from typing import Any, Dict

import pytest
from both import Both
from faulty import Faulty

import cloche
from cloche._core.wire import retry_after, retry_delay

OK = {"sandboxID": "new", "envdVersion": "0.6.13", "envdAccessToken": "t", "templateID": "base"}
REFUSED = {"code": 503, "message": "why"}


def replying(status: int, message: Any, **headers: str) -> Any:
    return lambda to, asked: to.reply(status, json.dumps(message).encode(), **headers)


def create(both: Both, server: Faulty, **opts: Any) -> Any:
    return both.run(lambda: both.Sandbox.create("base", api_key="key", api_url=server.url, **opts))


@pytest.mark.parametrize("status", [429, 502, 503, 504])
def test_a_passing_refusal_is_repeated_with_the_same_bytes(both: Both, server: Faulty, status: int) -> None:
    server.then(replying(status, REFUSED), replying(201, OK))
    assert create(both, server, idempotency_key="k-1").sandbox_id == "new"
    assert len(server.asked) == 2
    first, second = server.asked
    assert first.body == second.body
    assert first.headers == second.headers
    assert first.headers["idempotency-key"] == "k-1"


@pytest.mark.parametrize("status", [429, 502, 503, 504])
def test_should_retry_false_is_final(both: Both, server: Faulty, status: int) -> None:
    server.then(replying(status, REFUSED, Should_Retry="false"))
    with pytest.raises(cloche.ClocheException):
        create(both, server)
    assert len(server.asked) == 1


def test_should_retry_true_repeats_whatever_the_status(both: Both, server: Faulty) -> None:
    server.then(replying(409, REFUSED, Should_Retry="true"), replying(201, OK))
    create(both, server)
    assert len(server.asked) == 2


def test_a_final_refusal_comes_after_three_repeats(both: Both, server: Faulty) -> None:
    server.then(replying(503, REFUSED))
    with pytest.raises(cloche.ServiceBusyException) as caught:
        create(both, server)
    assert len(server.asked) == 4
    assert caught.value.status_code == 503
    assert not isinstance(caught.value, cloche.SandboxException)


def test_retries_0_asks_once(both: Both, server: Faulty) -> None:
    server.then(replying(503, REFUSED))
    with pytest.raises(cloche.ServiceBusyException):
        create(both, server, retries=0)
    assert len(server.asked) == 1


def test_retry_after_is_waited_for(both: Both, server: Faulty) -> None:
    server.then(replying(429, REFUSED, Retry_After="1"), replying(201, OK))
    began = time.monotonic()
    create(both, server)
    assert time.monotonic() - began >= 1


def test_a_wait_beyond_the_request_timeout_is_not_begun(both: Both, server: Faulty) -> None:
    server.then(replying(429, REFUSED, Retry_After="30"))
    began = time.monotonic()
    with pytest.raises(cloche.RateLimitException):
        create(both, server, request_timeout=5)
    assert time.monotonic() - began < 5
    assert len(server.asked) == 1


def test_calls_into_a_box_are_never_repeated(both: Both, server: Faulty) -> None:
    server.then(replying(503, {"code": "unavailable", "message": "why"}))
    with pytest.raises(cloche.SandboxException):
        both.run(lambda: both.box(server.url).commands.list())
    assert [asked.path for asked in server.asked if asked.path != "/health"] == ["/process.Process/List"]


@pytest.mark.parametrize(
    ("value", "seconds"),
    [
        ("0", 0.0), ("7", 7.0), ("2147483647", 2147483647.0), ("2147483648", None), ("12345678901", None), ("-1", None),
        ("1.5", None), ("Wed, 21 Oct 2026 07:28:00 GMT", None), ("", None), (None, None), ("\u0661", None),
    ],
)  # fmt: skip
def test_retry_after_is_decimal_seconds(value: Any, seconds: Any) -> None:
    assert retry_after(value) == seconds


@pytest.mark.parametrize("attempt", range(12))
def test_backoff_doubles_from_a_tenth_of_a_second_up_to_ten(attempt: int) -> None:
    headers: Dict[str, str] = {}
    delay = retry_delay(503, headers, attempt)
    full = min(0.1 * 2**attempt, 10)
    assert delay is not None and full / 2 <= delay <= full


@pytest.mark.parametrize("status", [200, 201, 400, 404, 500])
def test_other_answers_are_final(status: int) -> None:
    assert retry_delay(status, {}, 0) is None


def test_connections_are_used_again(both: Both, server: Faulty) -> None:
    server.then(replying(200, []))

    async def twice_async() -> None:
        for _ in range(5):
            await cloche.AsyncSandbox.list(api_key="key", api_url=server.url).next_items()

    def twice() -> Any:
        if both.asynchronous:
            return twice_async()
        return [cloche.Sandbox.list(api_key="key", api_url=server.url).next_items() for _ in range(5)]

    both.run(twice)
    assert len(server.asked) == 5
    assert server.connections == 1
