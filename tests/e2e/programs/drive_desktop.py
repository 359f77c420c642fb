# SPDX-License-Identifier: Apache-2.0
"""e2b-desktop on our template `desktop`: a person's hour at a screen, in a minute."""

from __future__ import annotations

import base64
import io
import os
import socket
import ssl
import time
import urllib.request
from collections.abc import Callable
from typing import TypeVar
from urllib.parse import parse_qs, urlsplit

from e2b import CommandExitException
from e2b_desktop import Sandbox
from PIL import Image

T = TypeVar("T")


def eventually(look: Callable[[], T], seconds: float = 30) -> T:
    end = time.monotonic() + seconds
    while True:
        try:
            if found := look():
                return found
        except CommandExitException:
            pass  # no such window or file yet
        assert time.monotonic() < end, f"not within {seconds} s"
        time.sleep(0.3)  # between two looks at the sandbox


def picture(desktop: Sandbox) -> Image.Image:
    return Image.open(io.BytesIO(desktop.screenshot()))


def see(desktop: Sandbox) -> None:
    shown = picture(desktop)
    assert (shown.format, shown.size) == ("PNG", (1024, 768)), shown
    assert len(shown.convert("RGB").getcolors(1 << 24)) > 50, "an empty screen"
    assert desktop.get_screen_size() == (1024, 768)


def point(desktop: Sandbox) -> None:
    desktop.move_mouse(300, 200)
    assert desktop.get_cursor_position() == (300, 200)
    desktop.right_click(500, 400)
    assert desktop.get_cursor_position() == (500, 400)
    desktop.press("esc")
    desktop.scroll("down", 2)
    desktop.double_click(510, 410)
    desktop.drag((510, 410), (560, 460))
    assert desktop.get_cursor_position() == (560, 460)


def type_into_a_terminal(desktop: Sandbox) -> None:
    before = picture(desktop)
    desktop.launch("xfce4-terminal")
    window = eventually(lambda: desktop.get_application_windows("xfce4-terminal"))[-1]
    eventually(lambda: "terminal" in desktop.get_window_title(window).lower())
    eventually(lambda: desktop.get_current_window_id())
    assert picture(desktop).tobytes() != before.tobytes()
    time.sleep(2)  # the shell's prompt
    desktop.write("echo 'typed by $HAND' >/tmp/typed")
    desktop.press("enter")
    assert eventually(lambda: desktop.commands.run("cat /tmp/typed").stdout) == "typed by $HAND\n"
    desktop.press(["ctrl", "d"])


def open_a_file(desktop: Sandbox) -> None:
    desktop.files.write("/home/user/note.txt", "a note\n")
    desktop.open("/home/user/note.txt")
    window = eventually(lambda: desktop.get_application_windows("mousepad"))[0]
    eventually(lambda: "note.txt" in desktop.get_window_title(window))


def first_bytes(url: str) -> bytes:
    """What a browser's WebSocket to the stream gets first: the frame of the VNC server's greeting."""
    parts = urlsplit(url)
    key = base64.b64encode(os.urandom(16)).decode()
    head = [
        "GET /websockify HTTP/1.1", f"Host: {parts.netloc}", "Upgrade: websocket", "Connection: Upgrade",
        f"Sec-WebSocket-Key: {key}", "Sec-WebSocket-Version: 13", "Sec-WebSocket-Protocol: binary",
    ]  # fmt: skip
    context = ssl.create_default_context()
    with (
        socket.create_connection((parts.hostname, parts.port or 443), 20) as plain,
        context.wrap_socket(plain, server_hostname=parts.hostname) as line,
    ):
        line.sendall("\r\n".join([*head, "", ""]).encode())
        got = b""
        while b"\r\n\r\n" not in got or len(got.split(b"\r\n\r\n", 1)[1]) < 14:
            more = line.recv(4096)
            assert more, got
            got += more
    assert got.startswith(b"HTTP/1.1 101"), got
    return got.split(b"\r\n\r\n", 1)[1]


def stream(desktop: Sandbox) -> None:
    desktop.stream.start()
    url = desktop.stream.get_url()
    assert parse_qs(urlsplit(url).query) == {"autoconnect": ["true"], "resize": ["scale"]}, url
    with urllib.request.urlopen(url, timeout=20) as page:
        assert b"noVNC" in page.read()
    assert first_bytes(url)[2:14] == b"RFB 003.008\n"
    desktop.stream.stop()

    desktop.stream.start(require_auth=True)
    key = desktop.stream.get_auth_key()
    assert f"password={key}" in desktop.stream.get_url(auth_key=key)
    desktop.stream.stop()


def main() -> None:
    desktop = Sandbox.create(resolution=(1024, 768))
    try:
        for part in (see, point, type_into_a_terminal, open_a_file, stream):
            part(desktop)
    finally:
        desktop.kill()


main()
