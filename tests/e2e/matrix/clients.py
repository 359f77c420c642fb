# SPDX-License-Identifier: Apache-2.0
"""Stock clients and programs on them, as locked, each in a folder of its own.

What is installed lies in .clients; a stamp of the lock and of the tool makes a second run free.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).resolve().parent
CLIENTS = HERE / ".clients"
DOMAIN = "box.test"


@dataclass(frozen=True)
class Client:
    registry: str
    e2b: str
    interpreter: str

    @property
    def name(self) -> str:
        return f"{self.registry}/{self.e2b}"

    @property
    def lock(self) -> Path:
        return HERE / self.registry / f"{self.e2b}.lock"

    @property
    def folder(self) -> Path:
        return CLIENTS / self.registry / self.e2b


def pip_install(lock: Path, folder: Path) -> None:
    if shutil.which("uv"):
        pip = ["uv", "pip", "install", "--python", sys.executable]
    else:
        pip = [str(HERE.parent / "python/.venv/bin/pip"), "install", "--disable-pip-version-check"]
    subprocess.run([*pip, "-q", "--no-deps", "--target", str(folder), "-r", str(lock)], check=True)


def npm_install(lock: Path, folder: Path) -> None:
    folder.mkdir()
    packages = json.loads(lock.read_text())["packages"]
    package = {"name": "matrix", "private": True, "dependencies": packages[""]["dependencies"]}
    (folder / "package.json").write_text(json.dumps(package))
    (folder / "package-lock.json").write_text(lock.read_text())
    subprocess.run(["npm", "ci", "--no-audit", "--no-fund", "--silent"], cwd=folder, check=True)


def version_of(command: str) -> str:
    return subprocess.run([command, "--version"], capture_output=True, text=True, check=True).stdout


def install(lock: Path, folder: Path, registry: str) -> None:
    """Installs what LOCK says into FOLDER, all or nothing."""
    tool = version_of(sys.executable if registry == "pypi" else "node")
    stamp = hashlib.sha256((lock.read_text() + tool).encode()).hexdigest()
    mark = folder / ".stamp"
    if mark.exists() and mark.read_text() == stamp:
        return
    fresh = folder.with_name(f".{folder.name}.{os.getpid()}")
    fresh.parent.mkdir(parents=True, exist_ok=True)
    try:
        (pip_install if registry == "pypi" else npm_install)(lock, fresh)
        (fresh / ".stamp").write_text(stamp)
        shutil.rmtree(folder, ignore_errors=True)
        fresh.rename(folder)
    finally:
        shutil.rmtree(fresh, ignore_errors=True)


def knows_url(client: Client) -> bool:
    """Whether this version reads the variable that the quick start sets."""
    package = client.folder / ("e2b" if client.registry == "pypi" else "node_modules/e2b/dist")
    found = subprocess.run(["grep", "-rq", "E2B_SANDBOX_URL", str(package)], check=False)
    return found.returncode == 0


def environment(way: str) -> dict[str, str]:
    variables = dict(os.environ)
    if way == "domain":
        for name in ("E2B_API_URL", "E2B_SANDBOX_URL", "E2B_VOLUME_API_URL"):
            del variables[name]
        tls = variables["CLOCHE_TLS_DIR"]
        variables |= {
            "E2B_DOMAIN": f"{DOMAIN}:{variables['CLOCHE_TLS_URL'].rsplit(':', 1)[1]}",
            "SSL_CERT_FILE": f"{tls}/ca-bundle.pem",
            "NODE_EXTRA_CA_CERTS": f"{tls}/ca.pem",
        }
        for name in ("NO_PROXY", "no_proxy"):
            variables[name] = f"{variables.get(name, '')},.{DOMAIN}"
    return variables


def report(suite: str, cases: dict[str, str | None]) -> int:
    """Tells what failed and how many passed; the JUnit report goes to $TEST_REPORT. Returns the exit status."""
    failed = {name: why for name, why in cases.items() if why is not None}
    if "TEST_REPORT" in os.environ:
        command = [str(HERE.parents[2] / "scripts/junit"), "write", os.environ["TEST_REPORT"], suite]
        subprocess.run(command, input=json.dumps(cases), text=True, check=True)
    if failed:
        print("\nfailing:")
    for name, why in failed.items():
        print(f"FAIL  {name}: {why.splitlines()[-1][:300]}")
    print(f"{suite}: {len(cases) - len(failed)} passed, {len(failed)} failed")
    return 1 if failed or not cases else 0
