# SPDX-License-Identifier: Apache-2.0
"""Every scenario through the stock SDK and ours: the same results, field by field."""

from __future__ import annotations

from concurrent.futures import Future

import pytest
from compare import step_differences, stumbled
from conftest import Said
from table import PAIRS, cases, every_scenario


@pytest.mark.parametrize(("player", "scenario"), cases(), ids=lambda value: value)
def test_the_same_as_the_stock_sdk(played: dict[str, Future[Said]], player: str, scenario: str) -> None:
    (steps,) = [one["steps"] for one in every_scenario() if one["name"] == scenario]
    stock, ours = played[PAIRS[player]].result()[scenario], played[player].result().get(scenario)
    assert ours is not None, f"{player} ended before this scenario"
    assert not stumbled(stock), stumbled(stock)
    assert len(stock) == len(steps)
    assert len(ours) == len(steps), ours[-1]
    names = [f"{i} {step['do']}" for i, step in enumerate(steps)]
    wrong = [line for each in zip(names, stock, ours, strict=True) for line in step_differences(*each)]
    assert not wrong, "\n" + "\n".join(wrong)
