# SPDX-License-Identifier: Apache-2.0
"""sys.stdout and sys.stderr of a kernel: each write is a message at once, nothing is buffered.

print() is replaced by one that joins its pieces first, because the built-in one writes text and newline separately and
would cost two messages; any other file, and a redirected stdout, gets the built-in one.
In a forked child the streams write to the descriptors instead: only the kernel speaks the protocol.
"""

import builtins
import codecs
import io
import os
import sys
from collections.abc import Iterable
from typing import Any

from .publisher import Publisher


class Stream(io.TextIOBase):
    """A text stream to the client. Looks like a file on descriptor 1 or 2 that is no terminal."""

    mode = "w"

    def __init__(self, publisher: Publisher, name: str, fd: int) -> None:
        self.publisher = publisher
        self.name = f"<{name}>"
        self._channel = name
        self._fd = fd
        self._direct = False
        self._buffer = Bytes(self)

    def write(self, text: str) -> int:
        if type(text) is not str:
            text = _text(text)
        if text:
            if self._direct:
                _write_all(self._fd, text.encode("utf-8", "backslashreplace"))
            else:
                self.publisher.text(self._channel, text)
        return len(text)

    def writelines(self, lines: Iterable[str]) -> None:  # type: ignore[override]
        self.write("".join(lines))

    def write_direct(self) -> None:
        """From now on writes go to the descriptor (a child process of the kernel)."""
        self._direct = True

    @property
    def buffer(self) -> "Bytes":  # type: ignore[override]
        return self._buffer

    @property
    def encoding(self) -> str:  # type: ignore[override]
        return "utf-8"

    @property
    def errors(self) -> str:  # type: ignore[override]
        return "backslashreplace"

    @property
    def newlines(self) -> None:  # type: ignore[override]
        return None

    @property
    def line_buffering(self) -> bool:
        return False

    @property
    def write_through(self) -> bool:
        return True

    def reconfigure(self, **_options: Any) -> None:
        """Accepted, since programs do it; there is nothing to configure."""

    def fileno(self) -> int:
        return self._fd

    def isatty(self) -> bool:
        return False

    def readable(self) -> bool:
        return False

    def writable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return False

    def flush(self) -> None:
        """Nothing is ever held back."""

    def close(self) -> None:
        """Stays open: a closed stdout would silence every later cell."""

    def __repr__(self) -> str:
        return f"<Stream name={self.name!r} encoding='utf-8'>"


class Bytes(io.BufferedIOBase):
    """stdout.buffer: bytes into the same stream; a character cut in two waits for its rest."""

    mode = "wb"

    def __init__(self, stream: Stream) -> None:
        self._stream = stream
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")

    @property
    def raw(self) -> "Bytes":  # type: ignore[override]
        return self

    @property
    def name(self) -> str:
        return self._stream.name

    def write(self, data: Any) -> int:
        view = memoryview(data).cast("B")
        if self._stream._direct:
            _write_all(self._stream.fileno(), bytes(view))
        else:
            text = self._decoder.decode(view)
            if text:
                self._stream.write(text)
        return len(view)

    def finish(self) -> None:
        """The end of a run: half a character will not be completed any more."""
        if self._decoder.getstate()[0]:
            self._stream.write(self._decoder.decode(b"", True))

    def fileno(self) -> int:
        return self._stream.fileno()

    def isatty(self) -> bool:
        return False

    def writable(self) -> bool:
        return True

    def flush(self) -> None:
        """Nothing is ever held back."""

    def close(self) -> None:
        """Stays open, like its stream."""


def install(publisher: Publisher) -> tuple[Stream, Stream]:
    """Puts the two streams and the joining print() in place."""
    out, err = Stream(publisher, "stdout", 1), Stream(publisher, "stderr", 2)
    for original in (sys.__stdout__, sys.__stderr__):
        if original is not None:
            original.reconfigure(write_through=True)  # type: ignore[union-attr]
    sys.stdout, sys.stderr = out, err
    builtins.print = _joining_print(builtins.print)  # type: ignore[assignment]
    return out, err


def _joining_print(original: Any) -> Any:
    def print(
        *args: Any, sep: str | None = None, end: str | None = None, file: Any = None, flush: bool = False
    ) -> None:
        target = sys.stdout if file is None else file
        if type(target) is not Stream:
            original(*args, sep=sep, end=end, file=file, flush=flush)
            return
        option: Any
        for option in (sep, end):
            if option is not None and not isinstance(option, str):
                original(*args, sep=sep, end=end)  # raises the TypeError everybody knows
        text = (" " if sep is None else sep).join(map(str, args))
        target.write(text + ("\n" if end is None else end))

    print.__module__ = "builtins"
    print.__qualname__ = "print"
    print.__doc__ = original.__doc__
    return print


def _text(value: Any) -> str:
    if isinstance(value, str):
        return str.__str__(value)
    raise TypeError(f"write() argument must be str, not {type(value).__name__}")


def _write_all(fd: int, data: bytes) -> None:
    while data:
        data = data[os.write(fd, data) :]
