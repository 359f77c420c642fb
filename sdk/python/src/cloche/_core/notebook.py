# SPDX-License-Identifier: Apache-2.0
"""HTML of an execution for notebooks. Everything but a result's own html and svg is escaped."""

from __future__ import annotations

import re
from html import escape
from typing import TYPE_CHECKING, List, Optional

if TYPE_CHECKING:
    from ..models import Execution, Result

_COLOURS = re.compile(r"\x1b\[[0-9;]*[A-Za-z]")


def execution_html(execution: Execution) -> str:
    parts = [_pre("".join(execution.logs.stdout)), _pre("".join(execution.logs.stderr), "background:#fdd")]
    parts += [_result_html(result) for result in execution.results]
    if execution.error is not None:
        error = execution.error
        parts.append(_pre(error.traceback or f"{error.name}: {error.value}", "color:#a00"))
    return f"<div>{''.join(part for part in parts if part)}</div>"


def _pre(text: str, style: str = "") -> str:
    if not text:
        return ""
    plain = escape(_COLOURS.sub("", text))
    return f'<pre style="{style}">{plain}</pre>' if style else f"<pre>{plain}</pre>"


def _image(kind: str, data: Optional[str]) -> str:
    return f'<img src="data:image/{kind};base64,{escape(data.strip())}"/>' if data else ""


def _result_html(result: Result) -> str:
    choices: List[Optional[str]] = [
        result.html, result.svg, _image("png", result.png), _image("jpeg", result.jpeg), _pre(result.markdown or ""),
        _pre(result.latex or ""), _pre(result.text or ""),
    ]  # fmt: skip
    return next((choice for choice in choices if choice), "")
