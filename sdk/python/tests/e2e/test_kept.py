# SPDX-License-Identifier: Apache-2.0
"""What outlives boxes: volumes and secrets; and git in a box."""

from __future__ import annotations

import io

import pytest

import cloche
from cloche import AsyncSecret, AsyncVolume, Sandbox, Secret, Volume


def test_volumes(unique: str) -> None:
    volume = Volume.create(unique)
    try:
        assert volume.volume_id in [one.volume_id for one in Volume.list()]
        assert Volume.get_info(volume.volume_id).name == unique
        assert volume.write_file("/a.txt", "hello").size == 5
        assert volume.make_dir("/d", mode=0o700).type == cloche.VolumeFileType.DIRECTORY
        volume.write_file("/d/b", io.BytesIO(b"x" * 1000), force=True)
        assert volume.read_file("/a.txt") == "hello"
        assert volume.read_file("/d/b", format="bytes") == b"x" * 1000
        assert b"".join(volume.read_file("/d/b", format="stream")) == b"x" * 1000
        assert [one.name for one in volume.list("/")] == ["a.txt", "d"]
        assert volume.get_info("/d").mode & 0o777 == 0o700
        assert volume.update_metadata("/a.txt", mode=0o600).mode & 0o777 == 0o600
        with Sandbox.create(timeout=60, volume_mounts={"/mnt/v": volume}) as box:
            assert box.commands.run("cat /mnt/v/a.txt", user="root").stdout == "hello"
            assert box.get_info().volume_mounts == [{"name": unique, "path": "/mnt/v"}]
        volume.remove("/d")
        assert not volume.exists("/d")
        with pytest.raises(cloche.VolumePathNotFoundException):
            volume.read_file("/d/b")
        assert Volume.connect(volume.volume_id).name == unique
    finally:
        assert Volume.destroy(volume.volume_id)
    assert not Volume.destroy(volume.volume_id)
    with pytest.raises(cloche.VolumeNotFoundException):
        Volume.connect(volume.volume_id)


async def test_volumes_async(unique: str) -> None:
    volume = await AsyncVolume.create(unique)
    try:
        await volume.write_file("/a", io.BytesIO(b"abc"))
        assert b"".join([chunk async for chunk in await volume.read_file("/a", format="stream")]) == b"abc"
        assert [one.name for one in await volume.list("/")] == ["a"]
        assert unique in [one.name for one in await AsyncVolume.list()]
    finally:
        await AsyncVolume.destroy(volume.volume_id)


def test_secrets(unique: str) -> None:
    made = Secret.create(unique, "value", metadata={"a": "b"})
    try:
        assert (made.name, made.version, made.metadata) == (unique, 1, {"a": "b"})
        assert Secret.update(unique, "other").version == 2
        assert Secret.get_info(made.secret_id).metadata == {"a": "b"}
        assert Secret.exists(unique)
        assert unique in [one.name for one in Secret.list(limit=1)]
        assert Secret.fill(unique) == f"${{e2b.secrets.{unique}}}"
        with pytest.raises(cloche.SecretException):
            Secret.create(unique, "value")
    finally:
        assert Secret.destroy(unique)
    assert not Secret.exists(unique)
    with pytest.raises(cloche.SecretNotFoundException):
        Secret.get_info(unique)


async def test_secrets_async(unique: str) -> None:
    await AsyncSecret.create(unique, "value")
    assert unique in [one.name async for one in AsyncSecret.list()]
    assert await AsyncSecret.destroy(unique)


def test_git(shared: Sandbox) -> None:
    git, path = shared.git, "/home/user/repo"
    git.init("/home/user/far.git", bare=True, initial_branch="main")
    git.init(path, initial_branch="main")
    git.configure_user("A", "a@example.com")
    assert git.get_config("user.name") == "A"
    shared.files.write(f"{path}/a b", "1")
    status = git.status(path)
    assert (status.current_branch, status.has_untracked, status.is_clean) == ("main", True, False)
    git.add(path)
    git.commit(path, "it's one", author_name="B")
    assert git.status(path).is_clean
    with pytest.raises(cloche.GitUpstreamException):
        git.pull(path)
    git.remote_add(path, "origin", "/home/user/other.git")
    git.remote_add(path, "origin", "/home/user/far.git", overwrite=True)
    assert git.remote_get(path, "origin") == "/home/user/far.git"
    assert git.remote_get(path, "none") is None
    git.push(path, remote="origin", branch="main")
    git.create_branch(path, "topic")
    assert git.branches(path).current_branch == "topic"
    assert sorted(git.branches(path).branches) == ["main", "topic"]
    git.checkout_branch(path, "main")
    git.delete_branch(path, "topic", force=True)
    shared.files.write(f"{path}/a b", "2")
    git.add(path, files=["a b"])
    git.reset(path, mode="mixed")
    git.restore(path, paths=["a b"])
    assert shared.files.read(f"{path}/a b") == "1"
    git.clone("/home/user/far.git", "/home/user/again", depth=1)
    assert git.status("/home/user/again").upstream == "origin/main"
    git.pull("/home/user/again")


def test_git_credentials_are_in_no_command_line_and_no_file(shared: Sandbox) -> None:
    shared.files.write("/home/user/credentials.py", CREDENTIALS)
    server = shared.commands.run("python3 credentials.py", background=True)
    first = next(iter(server))[0]
    port = int(first or "0")
    with pytest.raises(cloche.GitAuthException):
        shared.git.clone(f"http://localhost:{port}/x.git", "/home/user/p", username="me", password="s3cret")
    seen = shared.files.read("/home/user/seen")
    assert "Basic bWU6czNjcmV0" in seen  # me:s3cret
    found = shared.commands.run("grep -rl s3cret /home/user --exclude=seen || true").stdout
    assert found == ""
    assert "s3cret" not in shared.files.read("/home/user/lines")
    server.kill()


# A server that refuses everybody, and notes credentials and the command lines of its machine.
CREDENTIALS = """
import http.server, glob
class H(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        open('/home/user/seen', 'a').write(str(self.headers.get('Authorization')) + '\\n')
        lines = [open(f, 'rb').read() for f in glob.glob('/proc/[0-9]*/cmdline')]
        open('/home/user/lines', 'ab').write(b'\\n'.join(lines))
        self.send_response(401)
        self.send_header('WWW-Authenticate', 'Basic realm="x"')
        self.send_header('Content-Length', '0')
        self.end_headers()
    def log_message(self, *args):
        pass
s = http.server.HTTPServer(('127.0.0.1', 0), H)
print(s.server_port, flush=True)
s.serve_forever()
"""
