# SPDX-License-Identifier: Apache-2.0
"""oci - small OCI images made by hand, well formed or broken on purpose."""

import gzip
import hashlib
import io
import json
import os
import tarfile
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any


@dataclass
class Member:
    """One entry of a layer."""

    name: str
    data: bytes = b""
    kind: bytes = tarfile.REGTYPE
    link: str = ""
    mode: int = 0o644
    uid: int = 0
    gid: int = 0
    xattrs: dict[str, str] = field(default_factory=dict)


def layer(members: Iterable[Member]) -> bytes:
    """An uncompressed tar of the members, in the pax format."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=tarfile.PAX_FORMAT) as tar:
        for m in members:
            info = tarfile.TarInfo(m.name)
            info.type, info.linkname, info.mode, info.uid, info.gid = m.kind, m.link, m.mode, m.uid, m.gid
            info.size = len(m.data)
            info.mtime = 1_700_000_000
            info.pax_headers = {f"SCHILY.xattr.{k}": v for k, v in m.xattrs.items()}
            tar.addfile(info, io.BytesIO(m.data))
    return out.getvalue()


def digest(data: bytes) -> str:
    return "sha256:" + hashlib.sha256(data).hexdigest()


class Layout:
    """An OCI layout directory under construction."""

    def __init__(self, path: Path) -> None:
        self.path = path
        (path / "blobs" / "sha256").mkdir(parents=True)
        (path / "oci-layout").write_text('{"imageLayoutVersion":"1.0.0"}')

    def blob(self, data: bytes) -> dict[str, Any]:
        d = digest(data)
        (self.path / "blobs" / "sha256" / d.split(":")[1]).write_bytes(data)
        return {"digest": d, "size": len(data)}

    def image(self, layers: list[bytes], config: dict[str, Any] | None = None, **more: Any) -> str:
        """Adds the one image; returns the digest of its configuration. `more` overrides parts of the configuration."""
        described: dict[str, Any] = {
            "architecture": {"x86_64": "amd64", "aarch64": "arm64"}[os.uname().machine],
            "os": "linux",
            "config": config or {},
            "rootfs": {"type": "layers", "diff_ids": [digest(data) for data in layers]},
        }
        described.update(more)
        conf = self.blob(json.dumps(described).encode())
        packed = [self.blob(gzip.compress(data, mtime=0)) for data in layers]
        manifest = {
            "schemaVersion": 2,
            "mediaType": "application/vnd.oci.image.manifest.v1+json",
            "config": {"mediaType": "application/vnd.oci.image.config.v1+json", **conf},
            "layers": [{"mediaType": "application/vnd.oci.image.layer.v1.tar+gzip", **p} for p in packed],
        }
        entry = self.blob(json.dumps(manifest).encode())
        index = {
            "schemaVersion": 2,
            "manifests": [
                {
                    "mediaType": "application/vnd.oci.image.manifest.v1+json",
                    **entry,
                    "annotations": {"org.opencontainers.image.ref.name": "latest"},
                }
            ],
        }
        (self.path / "index.json").write_text(json.dumps(index))
        return str(conf["digest"])
