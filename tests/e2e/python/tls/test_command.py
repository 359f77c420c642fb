# SPDX-License-Identifier: Apache-2.0
"""`cloche tls`: what it writes, what it keeps, and what it refuses."""

from __future__ import annotations

import os
import stat
import subprocess
from pathlib import Path


def cloche(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [os.environ["CLOCHE_BIN"], *words], capture_output=True, text=True, check=False, timeout=30
    )


def openssl(*words: str) -> str:
    done = subprocess.run(["openssl", *words], capture_output=True, text=True, check=True)
    return done.stdout


def test_init_makes_an_authority_and_a_certificate_for_the_names(tmp_path: Path) -> None:
    files = tmp_path / "deep" / "tls"
    done = cloche(
        "tls", "init", "--dir", str(files), "--domain", "boxes.example",
        "--name", "10.1.2.3", "--name", "cloche.lan",
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    modes = {each.name: stat.S_IMODE(each.stat().st_mode) for each in files.iterdir()}
    assert modes == {
        "ca.pem": 0o644,
        "ca-bundle.pem": 0o644,
        "ca-key.pem": 0o600,
        "cert.pem": 0o644,
        "key.pem": 0o600,
    }
    openssl("verify", "-x509_strict", "-CAfile", str(files / "ca.pem"), str(files / "cert.pem"))
    names = openssl("x509", "-in", str(files / "cert.pem"), "-noout", "-ext", "subjectAltName")
    for name in ("*.boxes.example", "boxes.example", "localhost", "cloche.lan"):
        assert f"DNS:{name}" in names
    for address in ("127.0.0.1", "10.1.2.3"):
        assert f"IP Address:{address}" in names
    authority = openssl("x509", "-in", str(files / "ca.pem"), "-noout", "-ext", "basicConstraints")
    assert "CA:TRUE" in authority
    assert (files / "ca-bundle.pem").read_text().endswith((files / "ca.pem").read_text())
    for line in (f"NODE_EXTRA_CA_CERTS={files}/ca.pem", f"SSL_CERT_FILE={files}/ca-bundle.pem"):
        assert line in done.stdout


def test_a_second_init_keeps_the_authority_unless_told_otherwise(tmp_path: Path) -> None:
    def texts() -> tuple[str, str]:
        return (tmp_path / "ca.pem").read_text(), (tmp_path / "cert.pem").read_text()

    place = ("--dir", str(tmp_path))
    assert cloche("tls", "init", *place).returncode == 0
    authority, certificate = texts()
    assert cloche("tls", "init", *place).returncode == 0
    assert texts()[0] == authority
    assert texts()[1] != certificate
    assert cloche("tls", "init", *place, "--new-authority").returncode == 0
    assert texts()[0] != authority
    shown = cloche("tls", "show", *place)
    assert shown.returncode == 0
    assert "*.box.test" in shown.stdout


def test_what_can_not_be_a_name_is_refused(tmp_path: Path) -> None:
    for name in ("a,IP:1.2.3.4", "-x", "a b", ""):
        done = cloche("tls", "init", "--dir", str(tmp_path), "--domain", name)
        assert done.returncode == 1, name
        assert "neither a host name nor an IP address" in done.stderr
    assert cloche("tls", "show", "--dir", str(tmp_path)).returncode == 1
    assert cloche("tls", "init", "--dirr", "x").returncode == 2
    assert cloche("tls").returncode == 2


def test_a_server_says_which_file_is_missing_or_does_not_fit(tmp_path: Path) -> None:
    data = ("--data", str(tmp_path / "data"), "--listen", "127.0.0.1:0")
    listen = ("--tls-listen", "127.0.0.1:0")
    done = cloche("serve", *data, *listen)
    assert done.returncode == 1
    assert f"{tmp_path}/data/tls/cert.pem" in done.stderr
    assert "cloche tls init" in done.stderr
    for name in ("one", "two"):
        assert cloche("tls", "init", "--dir", str(tmp_path / name)).returncode == 0
    mixed = ("--tls-cert", f"{tmp_path}/one/cert.pem", "--tls-key", f"{tmp_path}/two/key.pem")
    done = cloche("serve", *data, *listen, *mixed)
    assert done.returncode == 1
    assert "does not belong to the certificate" in done.stderr
    done = cloche("serve", *data, *listen, *mixed[:2])
    assert done.returncode == 1
    assert "'tls_cert' and 'tls_key' belong together" in done.stderr
