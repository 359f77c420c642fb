# SPDX-License-Identifier: Apache-2.0
"""What running code gives back: results in up to thirteen formats, logs, errors, contexts."""

from __future__ import annotations

import json
import logging
from dataclasses import dataclass, field
from typing import Any, Awaitable, Callable, Dict, Iterable, List, Literal, Optional, Tuple, TypeVar, Union

from .charts import Chart, chart_from_dict

T = TypeVar("T")

RunCodeLanguage = Union[Literal["python", "javascript", "typescript", "r", "java", "bash"], str]
OutputHandler = Union[Callable[[T], Any]]
OutputHandlerWithAsync = Union[Callable[[T], Any], Callable[[T], Awaitable[Any]]]

logger = logging.getLogger(__name__)

# Format, its MIME type in a notebook. `data` and `chart` have none: notebooks show the picture beside them.
_MIME: Tuple[Tuple[str, str], ...] = (
    ("text", "text/plain"),
    ("html", "text/html"),
    ("markdown", "text/markdown"),
    ("svg", "image/svg+xml"),
    ("png", "image/png"),
    ("jpeg", "image/jpeg"),
    ("pdf", "application/pdf"),
    ("latex", "text/latex"),
    ("json", "application/json"),
    ("javascript", "application/javascript"),
)
_FORMATS = (*(name for name, _ in _MIME), "data", "chart")


@dataclass
class OutputMessage:
    """A piece of what the code printed."""

    line: str
    timestamp: int
    """Nanoseconds since 1970."""
    error: bool = False
    """Whether it was printed to stderr."""

    def __str__(self) -> str:
        return self.line


@dataclass
class ExecutionError:
    """An exception that the code did not catch."""

    name: str
    value: str
    traceback: str

    def __init__(self, name: str, value: str, traceback: str, **kwargs: Any) -> None:
        self.name = name
        self.value = value
        self.traceback = traceback

    def to_json(self) -> str:
        return json.dumps({"name": self.name, "value": self.value, "traceback": self.traceback})


class MIMEType(str):
    """The name of a MIME type."""


@dataclass
class Result:
    """A value that the code showed: the last line's, or of a call of `display`."""

    text: Optional[str] = None
    html: Optional[str] = None
    markdown: Optional[str] = None
    svg: Optional[str] = None
    png: Optional[str] = None
    jpeg: Optional[str] = None
    pdf: Optional[str] = None
    latex: Optional[str] = None
    json: Optional[Dict[str, Any]] = None
    javascript: Optional[str] = None
    data: Optional[Dict[str, Any]] = None
    chart: Optional[Chart] = None
    is_main_result: bool = False
    """Whether it is the value of the last line."""
    extra: Optional[Dict[str, Any]] = None
    """Formats without a field of their own, by MIME type."""

    def __init__(
        self,
        text: Optional[str] = None,
        html: Optional[str] = None,
        markdown: Optional[str] = None,
        svg: Optional[str] = None,
        png: Optional[str] = None,
        jpeg: Optional[str] = None,
        pdf: Optional[str] = None,
        latex: Optional[str] = None,
        json: Optional[Dict[str, Any]] = None,
        javascript: Optional[str] = None,
        data: Optional[Dict[str, Any]] = None,
        chart: Optional[Dict[str, Any]] = None,
        is_main_result: bool = False,
        extra: Optional[Dict[str, Any]] = None,
        **kwargs: Any,
    ) -> None:
        self.text = text
        self.html = html
        self.markdown = markdown
        self.svg = svg
        self.png = png
        self.jpeg = jpeg
        self.pdf = pdf
        self.latex = latex
        self.json = json
        self.javascript = javascript
        self.data = data
        self.chart = None
        if chart:
            try:
                self.chart = chart_from_dict(chart)
            except Exception as error:
                logger.error("a chart of type %r can't be read: %s", chart.get("type"), error)
        self.is_main_result = is_main_result
        self.extra = extra

    def __getitem__(self, item: str) -> Any:
        if item in _FORMATS:
            return getattr(self, item)
        if self.extra and item in self.extra:
            return self.extra[item]
        return getattr(self, item)

    def formats(self) -> Iterable[str]:
        """The formats that this result has."""
        return [name for name in _FORMATS if getattr(self, name)] + list(self.extra or ())

    def __str__(self) -> str:
        return self.__repr__()

    def __repr__(self) -> str:
        return f"Result({self.text})" if self.text else f"Result(Formats: {', '.join(self.formats())})"

    def _repr_mimebundle_(
        self, include: Optional[Iterable[str]] = None, exclude: Optional[Iterable[str]] = None
    ) -> Dict[str, Any]:
        """All formats at once, for notebooks: the front end picks the best one that it can show."""
        bundle: Dict[str, Any] = {mime: getattr(self, name) for name, mime in _MIME if getattr(self, name)}
        bundle.update((key, value) for key, value in (self.extra or {}).items() if "/" in key)
        if include is not None:
            wanted = set(include)
            bundle = {mime: value for mime, value in bundle.items() if mime in wanted}
        if exclude is not None:
            unwanted = set(exclude)
            bundle = {mime: value for mime, value in bundle.items() if mime not in unwanted}
        return bundle

    def _repr_html_(self) -> Optional[str]:
        return self.html

    def _repr_markdown_(self) -> Optional[str]:
        return self.markdown

    def _repr_svg_(self) -> Optional[str]:
        return self.svg

    def _repr_png_(self) -> Optional[str]:
        return self.png

    def _repr_jpeg_(self) -> Optional[str]:
        return self.jpeg

    def _repr_pdf_(self) -> Optional[str]:
        return self.pdf

    def _repr_latex_(self) -> Optional[str]:
        return self.latex

    def _repr_json_(self) -> Optional[Dict[str, Any]]:
        return self.json

    def _repr_javascript_(self) -> Optional[str]:
        return self.javascript


@dataclass(repr=False)
class Logs:
    """What the code printed, in pieces as they came."""

    stdout: List[str] = field(default_factory=lambda: [])
    stderr: List[str] = field(default_factory=lambda: [])

    def __init__(
        self, stdout: Optional[List[str]] = None, stderr: Optional[List[str]] = None, **kwargs: Any
    ) -> None:
        self.stdout = stdout or []
        self.stderr = stderr or []

    def __repr__(self) -> str:
        return f"Logs(stdout: {self.stdout}, stderr: {self.stderr})"

    def to_json(self) -> str:
        return json.dumps({"stdout": self.stdout, "stderr": self.stderr})


def _plain(result: Result) -> Dict[str, Any]:
    plain: Dict[str, Any] = {name: result[name] for name in result.formats() if name != "chart"}
    if result.chart is not None:
        plain["chart"] = result.chart.to_dict()
    plain["text"] = result.text
    return plain


@dataclass(repr=False)
class Execution:
    """What running a piece of code gave."""

    results: List[Result] = field(default_factory=lambda: [])
    logs: Logs = field(default_factory=lambda: Logs())
    error: Optional[ExecutionError] = None
    execution_count: Optional[int] = None

    def __init__(
        self,
        results: Optional[List[Result]] = None,
        logs: Optional[Logs] = None,
        error: Optional[ExecutionError] = None,
        execution_count: Optional[int] = None,
        **kwargs: Any,
    ) -> None:
        self.results = results or []
        self.logs = logs or Logs()
        self.error = error
        self.execution_count = execution_count

    def __repr__(self) -> str:
        return f"Execution(Results: {self.results}, Logs: {self.logs}, Error: {self.error})"

    @property
    def text(self) -> Optional[str]:
        """The last line's value as text."""
        for result in self.results:
            if result.is_main_result:
                return result.text
        return None

    def to_json(self) -> str:
        return json.dumps(
            {
                "results": [_plain(result) for result in self.results],
                "logs": self.logs.to_json(),
                "error": self.error.to_json() if self.error else None,
            }
        )

    def _repr_html_(self) -> str:
        """The whole execution as a notebook shows a cell: output, results, traceback."""
        from ._core.notebook import execution_html

        return execution_html(self)

    def _repr_mimebundle_(
        self, include: Optional[Iterable[str]] = None, exclude: Optional[Iterable[str]] = None
    ) -> Dict[str, Any]:
        bundle = {"text/plain": repr(self), "text/html": self._repr_html_()}
        wanted = set(bundle if include is None else include) - set(exclude or ())
        return {mime: value for mime, value in bundle.items() if mime in wanted}


@dataclass
class Context:
    """A kernel with variables of its own."""

    id: str
    language: str
    cwd: str

    def __init__(self, context_id: str, language: str, cwd: str, **kwargs: Any) -> None:
        self.id = context_id
        self.language = language
        self.cwd = cwd

    @classmethod
    def from_json(cls, data: Dict[str, str]) -> Context:
        return cls(context_id=data["id"], language=data["language"], cwd=data["cwd"])
