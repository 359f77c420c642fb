# SPDX-License-Identifier: Apache-2.0
"""auth_servers - servers of a test's own: a proxy of a registry that wants one password, and
AWS's token service.

The token service computes the signature of a request anew, from the request's bytes alone.
"""

import base64
import contextlib
import hashlib
import hmac
import http.client
import json
import re
import threading
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


class LocalServer:
    """An HTTP server on a free loopback port, for as long as it is not stopped."""

    def __init__(self, handler: type[BaseHTTPRequestHandler]) -> None:
        self.server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
        self.host = f"127.0.0.1:{self.server.server_address[1]}"
        self.thread = threading.Thread(target=self.server.serve_forever)
        self.thread.start()

    def stop(self) -> None:
        self.server.shutdown()
        self.server.server_close()
        self.thread.join()


class Quiet(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, format: str, *args: Any) -> None:
        del format, args

    def answer(self, status: int, body: bytes, **headers: str) -> None:
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)


class PasswordProxy(LocalServer):
    """Passes requests on to a registry when they carry this user and password, and no others."""

    def __init__(self, behind: str, user: str, password: str) -> None:
        wanted = "Basic " + base64.b64encode(f"{user}:{password}".encode()).decode()

        class Handler(Quiet):
            def do_GET(self) -> None:
                if self.headers.get("Authorization") != wanted:
                    self.answer(401, b"{}", WWW_Authenticate='Basic realm="registry"')
                    return
                with contextlib.closing(http.client.HTTPConnection(behind)) as line:
                    line.request(self.command, self.path, headers={"Accept": self.headers.get("Accept", "*/*")})
                    got = line.getresponse()
                    kept = {n: v for n, v in got.getheaders() if n in ("Content-Type", "Docker-Content-Digest")}
                    self.answer(got.status, got.read(), **kept)

            do_HEAD = do_GET

        super().__init__(Handler)


def sign(secret: str, key: str, date: str, region: str, signed: str, request: str) -> str:
    """The Authorization header of a canonical request."""
    scope = f"{date[:8]}/{region}/ecr/aws4_request"
    text = f"AWS4-HMAC-SHA256\n{date}\n{scope}\n{hashlib.sha256(request.encode()).hexdigest()}"
    made = b"AWS4" + secret.encode()
    for part in (date[:8], region, "ecr", "aws4_request"):
        made = hmac.new(made, part.encode(), hashlib.sha256).digest()
    proof = hmac.new(made, text.encode(), hashlib.sha256).hexdigest()
    return f"AWS4-HMAC-SHA256 Credential={key}/{scope}, SignedHeaders={signed}, Signature={proof}"


@dataclass
class Account:
    """Who may ask, and what they get."""

    key: str
    secret: str
    region: str
    password: str
    asked: list[dict[str, str]] = field(default_factory=list)


class TokenServer(LocalServer):
    """GetAuthorizationToken of Elastic Container Registry."""

    def __init__(self, account: Account) -> None:
        class Handler(Quiet):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                h = self.headers
                account.asked.append(dict(h.items()))
                found = re.search(r"SignedHeaders=([a-z0-9;-]+)", h.get("Authorization", ""))
                names = found[1].split(";") if found else []
                lines = "".join(f"{name}:{h.get(name, '').strip()}\n" for name in names)
                signed = ";".join(names)
                request = f"POST\n{self.path}\n\n{lines}\n{signed}\n{hashlib.sha256(body).hexdigest()}"
                wanted = sign(account.secret, account.key, h["X-Amz-Date"], account.region, signed, request)
                # AWS wants the host and all of its own headers to be signed.
                needed = {"host", *(name.lower() for name in h if name.lower().startswith("x-amz-"))}
                if h["X-Amz-Target"] != "AmazonEC2ContainerRegistry_V20150921.GetAuthorizationToken":
                    self.say(400, {"__type": "UnknownOperationException"})
                elif not needed <= set(names) or not hmac.compare_digest(h.get("Authorization", ""), wanted):
                    self.say(400, {"__type": "InvalidSignatureException", "message": "The signature does not match."})
                else:
                    token = base64.b64encode(f"AWS:{account.password}".encode()).decode()
                    entry = {"authorizationToken": token, "expiresAt": 2e9, "proxyEndpoint": "https://registry.invalid"}
                    self.say(200, {"authorizationData": [entry]})

            def say(self, status: int, told: dict[str, Any]) -> None:
                self.answer(status, json.dumps(told).encode(), Content_Type="application/x-amz-json-1.1")

        super().__init__(Handler)
