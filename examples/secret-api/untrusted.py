# SPDX-License-Identifier: Apache-2.0
"""Untrusted code without a network but for one host, and with a key for that host that it never sees."""

from __future__ import annotations

import os
import sys
from urllib.parse import urlsplit

from cloche import ALL_TRAFFIC, Sandbox, SandboxNetworkOpts, Secret

API_URL = os.environ.get("API_URL", "https://api.openai.com/v1/models")
HOST = urlsplit(API_URL).hostname or sys.exit(f"{API_URL} has no host")
SECRET = "example-api-key"

# What somebody else wrote. It wants the key, and to send things elsewhere.
UNTRUSTED = """
import os, urllib.request

def status(url):
    try:
        with urllib.request.urlopen(url, timeout=20) as answer:
            return answer.status
    except Exception as error:
        return f"refused, {type(error).__name__}"

print("the API:", status(os.environ["API_URL"]))
print("another host:", status("https://example.com/"))
print("an address:", status("http://198.51.100.7/"))
print("the key:", os.environ.get("API_KEY"))
"""


def main() -> None:
    # The key goes to the server, once. A sandbox only ever has the name of it.
    Secret.create(SECRET, os.environ["API_KEY"])
    try:
        header = {"Authorization": f"Bearer {Secret.fill(SECRET)}"}
        network: SandboxNetworkOpts = {
            "deny_out": [ALL_TRAFFIC],
            "allow_out": [HOST],
            "rules": {HOST: [{"transform": {"headers": header}}]},
        }
        with Sandbox.create(network=network, envs={"API_URL": API_URL}) as box:
            run = box.run_code(UNTRUSTED)
            print("".join(run.logs.stdout), end="")
    finally:
        Secret.destroy(SECRET)


if __name__ == "__main__":
    main()
