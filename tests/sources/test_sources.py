# SPDX-License-Identifier: Apache-2.0
"""Templates that begin with images: fetched by the real program from a real registry on loopback, unpacked in a real
box."""

import base64
import contextlib
import json
import os
import re
import shutil
import signal
import socket
import stat
import subprocess
import tarfile
import tempfile
import time
import unittest
from pathlib import Path
from typing import Any, ClassVar

from auth_servers import Account, LocalServer, PasswordProxy, Quiet, TokenServer
from oci import Layout, Member, layer

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
BUILD = ROOT / os.environ.get("BUILD", "build")
OUTSIDE = "leaves the directory"
BCRYPT_OF_SECRET = "$2b$04$abcdefghijklmnopqrstuu2r9OfJnfCsdneAXAGHnS4UpFFP8WIrW"
DIR, LINK, HARD, CHAR, FIFO = tarfile.DIRTYPE, tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.CHRTYPE, tarfile.FIFOTYPE


def free_port() -> int:
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return int(s.getsockname()[1])


def program() -> str:
    return subprocess.run([ROOT / "scripts" / "registry"], stdout=subprocess.PIPE, check=True).stdout.decode().strip()


class Registry:
    """Debian's docker-registry on a free loopback port, with or without a password."""

    def __init__(self, top: Path, password: bool) -> None:
        self.port = free_port()
        self.host = f"127.0.0.1:{self.port}"
        auth = ""
        if password:
            (top / "passwd").write_text(f"anna:{BCRYPT_OF_SECRET}\n")
            auth = f"auth:\n  htpasswd:\n    realm: test\n    path: {top}/passwd\n"
        (top / "config.yml").write_text(
            f"version: 0.1\nlog:\n  level: error\nstorage:\n  filesystem:\n    rootdirectory: {top}/store\n"
            f"http:\n  addr: {self.host}\n{auth}"
        )
        self.log = open(top / "log", "wb")  # noqa: SIM115 - closed in stop()
        self.process = subprocess.Popen(
            [program(), "serve", str(top / "config.yml")],
            stdout=self.log,
            stderr=self.log,
            stdin=subprocess.DEVNULL,
        )
        for _ in range(200):
            with socket.socket() as s:
                if s.connect_ex(("127.0.0.1", self.port)) == 0:
                    return
            time.sleep(0.05)  # between looks
        raise RuntimeError("the registry did not start: " + (top / "log").read_text())

    def stop(self) -> None:
        self.process.send_signal(signal.SIGTERM)
        self.process.wait(10)
        self.log.close()


class Sources(unittest.TestCase):
    top: ClassVar[Path]
    registry: ClassVar[Registry]
    private: ClassVar[Registry]

    @classmethod
    def setUpClass(cls) -> None:
        cls.top = Path(tempfile.mkdtemp(prefix="cloche-sources."))
        cls.addClassCleanup(shutil.rmtree, cls.top)
        for name in ("open", "closed", "images", "data"):
            (cls.top / name).mkdir()
        cls.top.chmod(0o755)
        cls.registry = Registry(cls.top / "open", password=False)
        cls.addClassCleanup(cls.registry.stop)
        cls.private = Registry(cls.top / "closed", password=True)
        cls.addClassCleanup(cls.private.stop)

    # ---- helpers ----

    def fetch(self, image: str, runtime: Path = BUILD / "runtime", **settings: str) -> dict[str, Any]:
        settings.setdefault("insecure", "127.0.0.1:*")
        path = settings.pop("path", os.environ["PATH"])
        done = subprocess.run(
            [BUILD / "tests-boxes" / "source_probe", self.top / "data", runtime, image]
            + [f"{k}={v}" for k, v in settings.items()],
            capture_output=True,
            check=False,
            timeout=400,
            env=os.environ | {"PATH": path},
        )
        self.assertEqual(done.returncode, 0, done.stderr.decode())
        told: dict[str, Any] = json.loads(done.stdout)
        told["log"] = done.stderr.decode()
        self.assertEqual(list((self.top / "data" / "boxes").glob("unpack-*")), [], "a box is left over")
        self.assertEqual(list((self.top / "data" / "layers").glob(".new-*")), [], "a half layer is left over")
        self.assertEqual(list((self.top / "data" / "cache").glob("images/*/fetch-*")), [], "a fetch is left over")
        return told

    def good(self, image: str, **settings: str) -> tuple[Path, dict[str, Any]]:
        """The tree as a box would see it, and what was told."""
        settings.setdefault("layers", "40")
        told = self.fetch(image, **settings)
        self.assertEqual(told["code"], 0, told["error"] + "\n" + told["log"])
        return self.merged(told["layers"]), told

    def merged(self, layers: list[str]) -> Path:
        if len(layers) == 1:
            return Path(layers[0])
        place = Path(tempfile.mkdtemp(prefix="merged.", dir=self.top))
        subprocess.run(
            ["mount", "-t", "overlay", "overlay", "-o", "ro,lowerdir=" + ":".join(layers), str(place)], check=True
        )
        self.addCleanup(subprocess.run, ["umount", str(place)], check=True)
        return place

    def bad(self, image: str, runtime: Path = BUILD / "runtime", **settings: str) -> str:
        settings.setdefault("layers", "40")
        told = self.fetch(image, runtime, **settings)
        self.assertLess(told["code"], 0, "it was accepted")
        return str(told["error"])

    def layout(self, name: str, layers: list[list[Member]], config: dict[str, Any] | None = None, **more: Any) -> Path:
        path = self.top / "images" / name
        Layout(path).image([layer(members) for members in layers], config, **more)
        return path

    def push(self, path: Path, registry: Registry, name: str, *options: str) -> str:
        subprocess.run(
            [
                "skopeo",
                "--insecure-policy",
                "copy",
                "-q",
                "--dest-tls-verify=false",
                *options,
                f"oci:{path}",
                f"docker://{registry.host}/{name}",
            ],
            check=True,
        )
        return f"{registry.host}/{name}"

    def local(self, name: str, layers: list[list[Member]], **settings: str) -> tuple[Path, dict[str, Any]]:
        """Its layers kept apart, after a look that they make the same tree as all of them in one."""
        self.layout(name, layers)
        where = f"oci:{name}"
        apart, told = self.good(where, dir=str(self.top / "images"), **settings)
        one, squashed = self.good(where, dir=str(self.top / "images"), layers="0", team="squashed", **settings)
        self.assertEqual(len(squashed["layers"]), 1)
        self.assertEqual(self.tree(apart), self.tree(one))
        return apart, told

    def tree(self, top: Path) -> dict[str, tuple[Any, ...]]:
        """Everything below, but what the jail of the unpacker's box leaves: places for mounts and names of the host."""
        left = {"dev", "proc", "sys", "tmp", "run", "etc/hosts", "etc/hostname", "etc/resolv.conf"}
        found: dict[str, tuple[Any, ...]] = {}
        for path in top.rglob("*"):
            name = str(path.relative_to(top))
            st = path.lstat()
            bare = name == "etc" and not set(os.listdir(path)) - {"hosts", "hostname", "resolv.conf"}
            if name in left or bare or name.startswith(("dev/", "proc/", "sys/")):
                continue
            content = os.readlink(path) if path.is_symlink() else path.read_bytes() if path.is_file() else b""
            found[name] = (oct(st.st_mode), st.st_uid, st.st_gid, content, st.st_mtime if path.is_file() else None)
        return found

    def refused(self, name: str, layers: list[list[Member]], **settings: str) -> str:
        self.layout(name, layers)
        return self.bad(f"oci:{name}", dir=str(self.top / "images"), **settings)

    # ---- registries ----

    def test_an_image_of_a_registry_becomes_a_layer_with_its_environment(self) -> None:
        path = self.layout(
            "plain",
            [
                [
                    Member("etc", kind=DIR, mode=0o755),
                    Member("etc/os", b"one"),
                    Member("bin/tool", b"#!", mode=0o4755, uid=7, gid=8),
                ],
                [Member("etc/os", b"two"), Member("lib64", kind=LINK, link="usr/lib64")],
            ],
            {
                "Env": ["PATH=/usr/bin", "A=b=c", "1x=no"],
                "WorkingDir": "/srv",
                "User": "daemon",
                "Cmd": ["run"],
                "Entrypoint": ["/e"],
            },
        )
        fs, told = self.good(self.push(path, self.registry, "team/plain:1"))
        self.assertEqual((fs / "etc/os").read_bytes(), b"two")
        st = (fs / "bin/tool").stat()
        self.assertEqual((stat.S_IMODE(st.st_mode), st.st_uid, st.st_gid, st.st_mtime), (0o4755, 7, 8, 1_700_000_000))
        self.assertEqual(os.readlink(fs / "lib64"), "usr/lib64")
        self.assertEqual(
            told["config"],
            {
                "env": {"PATH": "/usr/bin", "A": "b=c"},
                "user": "daemon",
                "workdir": "/srv",
                "cmd": ["run"],
                "entrypoint": ["/e"],
            },
        )
        self.assertEqual(len(told["layers"]), 2)
        for place in told["layers"]:
            for entry in [Path(place), *Path(place).rglob("*")]:
                marks = [x for x in os.listxattr(entry, follow_symlinks=False) if x.startswith("trusted.")]
                if entry.name not in ("dev", "proc", "sys", "tmp", "run"):  # made by the jail, on nothing
                    self.assertEqual(marks, [], f"{entry} has marks of the overlay")

    def test_the_same_image_is_unpacked_once_per_team(self) -> None:
        path = self.layout("again", [[Member("word", b"w")]])
        name = self.push(path, self.registry, "again")
        first, told = self.good(name)
        inode = (first / "word").stat().st_ino
        second, repeated = self.good(name)
        self.assertEqual((told["key"], inode), (repeated["key"], (second / "word").stat().st_ino))
        self.assertNotIn("unpacking layer", repeated["log"])
        other, _ = self.good(name, team="team-b")
        self.assertNotEqual(other, first)

    def test_a_private_registry_takes_the_clients_credentials(self) -> None:
        path = self.layout("private", [[Member("secret", b"s")]])
        name = self.push(path, self.private, "private", "--dest-creds=anna:secret")
        right = json.dumps({"type": "registry", "username": "anna", "password": "secret"})
        wrong = json.dumps({"type": "registry", "username": "anna", "password": "guess"})
        self.assertRegex(self.bad(name), "(?i)authentication required|unauthorized")
        self.assertRegex(self.bad(name, registry=wrong), "(?i)authentication required|unauthorized")
        fs, told = self.good(name, registry=right)
        self.assertEqual((fs / "secret").read_bytes(), b"s")
        for hidden in ('secret"', base64.b64encode(b"anna:secret").decode()):
            self.assertNotIn(hidden, told["log"])
        self.assertRegex(
            self.bad(name), "(?i)authentication required|unauthorized"
        )  # what is cached needs a right, too

    def private_image(self, name: str) -> str:
        """An image in the open registry that a proxy of another host may serve."""
        path = self.layout(name, [[Member("inside", name.encode())]])
        return self.push(path, self.registry, f"behind/{name}:1").split("/", 1)[1]

    def test_a_google_service_account_is_the_password_of_its_user(self) -> None:
        account = json.dumps(
            {"type": "service_account", "project_id": "p", "private_key": '-----BEGIN\n"x"\n' + "k" * 1700}
        )
        proxy = PasswordProxy(self.registry.host, "_json_key", account)
        self.addCleanup(proxy.stop)
        name = f"{proxy.host}/{self.private_image('google')}"
        told = self.fetch(name, registry=json.dumps({"type": "gcp", "serviceAccountJson": account}))
        self.assertEqual(told["code"], 0, told["error"])
        self.assertEqual((Path(told["layers"][0]) / "inside").read_bytes(), b"google")
        self.assertNotIn("private_key", told["log"])
        other = json.dumps({"type": "gcp", "serviceAccountJson": account + " "})
        self.assertRegex(self.bad(name, registry=other), "(?i)authentication required|unauthorized")

    def test_an_aws_key_pair_is_changed_into_a_token(self) -> None:
        account = Account("AKIATEST", "wJalr/secret+key", "eu-north-1", "t" * 2500)
        tokens, proxy = TokenServer(account), PasswordProxy(self.registry.host, "AWS", account.password)
        self.addCleanup(tokens.stop)
        self.addCleanup(proxy.stop)
        name = f"{proxy.host}/{self.private_image('amazon')}"
        given = {
            "type": "aws",
            "awsAccessKeyId": account.key,
            "awsSecretAccessKey": account.secret,
            "awsRegion": account.region,
        }
        fs, told = self.good(name, registry=json.dumps(given), ecr=f"http://{tokens.host}")
        self.assertEqual((fs / "inside").read_bytes(), b"amazon")
        self.assertEqual(len(account.asked), 1)
        for hidden in (account.secret, account.password):
            self.assertNotIn(hidden, told["log"] + json.dumps(account.asked))
        guess = json.dumps(given | {"awsSecretAccessKey": "guess"})
        self.assertIn("The signature does not match.", self.bad(name, registry=guess, ecr=f"http://{tokens.host}"))
        elsewhere = json.dumps(given | {"awsRegion": "us-west-2"})
        self.assertIn("status 400", self.bad(name, registry=elsewhere, ecr=f"http://{tokens.host}"))

    def test_aws_key_pairs_that_make_no_sense_are_not_sent(self) -> None:
        account = Account("AKIATEST", "s", "eu-north-1", "t")
        tokens = TokenServer(account)
        self.addCleanup(tokens.stop)
        name = f"{self.registry.host}/x"
        given = {"type": "aws", "awsAccessKeyId": "AKIATEST", "awsSecretAccessKey": "s", "awsRegion": "eu-north-1"}
        for wrong, complaint in (
            ({"awsRegion": "evil.example/"}, "awsRegion"),
            ({"awsRegion": ""}, "awsRegion"),
            ({"awsAccessKeyId": 'x"\nurl = "http://127.0.0.1:1'}, "awsAccessKeyId"),
            ({"awsSecretAccessKey": ""}, "awsSecretAccessKey"),
            ({"awsSecretAccessKey": None}, "awsSecretAccessKey"),
        ):
            self.assertIn(complaint, self.bad(name, registry=json.dumps(given | wrong), ecr=f"http://{tokens.host}"))
        self.assertEqual(account.asked, [])
        nobody = f"http://127.0.0.1:{free_port()}"
        self.assertRegex(self.bad(name, registry=json.dumps(given), ecr=nobody), "AWS.*(?i:connect)")
        self.assertIn("fromImageRegistry", self.bad(name, registry='{"type":"other"}'))

    def test_a_key_is_in_no_process_list(self) -> None:
        """While the token service keeps the helper process waiting, whoever looks at this machine sees no secret."""
        seen: list[str] = []

        class Slow(Quiet):
            def do_POST(self) -> None:
                for process in Path("/proc").iterdir():
                    for name in ("cmdline", "environ"):
                        with contextlib.suppress(OSError):
                            seen.append((process / name).read_bytes().decode(errors="replace"))
                self.answer(400, b"{}")

        tokens = LocalServer(Slow)
        self.addCleanup(tokens.stop)
        secret = "unlike-any-other-secret"
        given = {"type": "aws", "awsAccessKeyId": "AKIATEST", "awsSecretAccessKey": secret, "awsRegion": "eu-north-1"}
        self.bad(f"{self.registry.host}/x", registry=json.dumps(given), ecr=f"http://{tokens.host}")
        self.assertTrue([text for text in seen if text.startswith("curl\0")], "the helper process was not seen")
        self.assertEqual([text[:80] for text in seen if secret in text and "source_probe" not in text], [])

    def test_credentials_are_read_by_a_process_without_rights(self) -> None:
        """Client JSON and the cloud's response are parsed by a helper that has no rights, never by the warden as
        root."""
        seen: list[str] = []

        class Slow(Quiet):
            def do_POST(self) -> None:
                for process in Path("/proc").iterdir():
                    with contextlib.suppress(OSError):
                        if b"\0registry-auth\0" in (process / "cmdline").read_bytes():
                            seen.append((process / "status").read_text())
                self.answer(400, b"{}")

        tokens = LocalServer(Slow)
        self.addCleanup(tokens.stop)
        given = {"type": "aws", "awsAccessKeyId": "AKIATEST", "awsSecretAccessKey": "s", "awsRegion": "eu-north-1"}
        self.bad(f"{self.registry.host}/x", registry=json.dumps(given), ecr=f"http://{tokens.host}")
        self.assertEqual(len(seen), 1, "the helper process was not seen")
        self.assertRegex(seen[0], r"Uid:\t64991\t64991\t64991\t64991")
        self.assertRegex(seen[0], r"NoNewPrivs:\t1")

    def test_a_registry_that_is_not_listed_is_not_asked(self) -> None:
        self.assertIn("image_registries", self.bad("127.0.0.1:1/x", insecure=""))
        self.assertIn("image_registries", self.bad("169.254.169.254/x"))

    def test_an_unknown_image_and_a_bad_name_say_so(self) -> None:
        self.assertRegex(self.bad(f"{self.registry.host}/nobody/home:1"), "(?i)manifest unknown|not found|unknown")
        for name in ("", "-x", "a b", "x/../y\n", f"{self.registry.host}//x"):
            self.assertIn("names no image", self.bad(name))

    def test_a_fetch_can_be_cancelled(self) -> None:
        with socket.socket() as silent:
            silent.bind(("127.0.0.1", 0))
            silent.listen()
            began = time.monotonic()
            told = self.fetch(f"127.0.0.1:{silent.getsockname()[1]}/x", cancel_ms="300")
            self.assertEqual(told["error"], "cancelled")
            self.assertLess(time.monotonic() - began, 10)
            slow = self.fetch(f"127.0.0.1:{silent.getsockname()[1]}/x", seconds="1")
            self.assertIn("did not finish within 1 s", slow["error"])

    # ---- files ----

    def test_files_are_found_only_in_the_operators_directory(self) -> None:
        outside = self.top / "outside"
        Layout(outside).image([layer([Member("x", b"x")])])
        images = str(self.top / "images")
        os.symlink(outside, self.top / "images" / "way-out")
        for path in ("../outside", "way-out", str(outside), "missing"):
            self.assertIn("not in the server's directory", self.bad(f"oci:{path}", dir=images))
        self.assertIn("image_dir", self.bad("oci:plain"))
        fs, _ = self.good(f"oci:{outside}", any_file="1")
        self.assertEqual((fs / "x").read_bytes(), b"x")

    def test_an_archive_of_docker_serves_too(self) -> None:
        path = self.layout("for-archive", [[Member("in/archive", b"yes")]])
        for kind in ("docker-archive", "oci-archive"):
            subprocess.run(
                [
                    "skopeo",
                    "--insecure-policy",
                    "copy",
                    "-q",
                    f"oci:{path}",
                    f"{kind}:{self.top}/images/{kind}.tar:my/image:1",
                ],
                check=True,
            )
            fs, _ = self.good(f"{kind}:{kind}.tar", dir=str(self.top / "images"))
            self.assertEqual((fs / "in/archive").read_bytes(), b"yes")
        self.assertIn("expects a file", self.bad("docker-archive:for-archive", dir=str(self.top / "images")))

    # ---- layers ----

    def test_whiteouts_remove_what_was_below_and_nothing_else(self) -> None:
        fs, _ = self.local(
            "whiteouts",
            [
                [
                    Member("a/old", b"1"),
                    Member("a/both", b"1"),
                    Member("b/x", b"1"),
                    Member("b/sub/deep", b"1"),
                    Member("c", b"1"),
                ],
                [
                    Member("a/.wh.old"),
                    Member("a/both", b"2"),
                    Member("a/.wh.both"),
                    Member("b/fresh", b"2"),
                    Member("b/.wh..wh..opq"),
                    Member("b/sub/new", b"2"),
                    Member(".wh.c"),
                    Member(".wh.never-there"),
                ],
            ],
        )
        have = sorted(self.tree(fs))
        self.assertEqual(have, ["a", "a/both", "b", "b/fresh", "b/sub", "b/sub/new"])
        self.assertEqual((fs / "a/both").read_bytes(), b"2")

    def test_hard_links_pipes_attributes_and_replaced_kinds_are_kept(self) -> None:
        fs, _ = self.local(
            "kinds",
            [
                [
                    Member("one", b"1", xattrs={"user.colour": "blue", "trusted.overlay.opaque": "y"}),
                    Member("two", kind=HARD, link="one"),
                    Member("pipe", kind=FIFO),
                    Member("was-dir/x", b"1"),
                    Member("was-file", b"1"),
                    Member("was-link", kind=LINK, link="/etc"),
                ],
                [
                    Member("was-dir", b"now a file"),
                    Member("was-file", kind=DIR, mode=0o700),
                    Member("was-link", kind=DIR),
                    Member("was-link/y", b"1"),
                    Member("high", uid=100000, gid=70000),
                ],
            ],
        )
        self.assertEqual((fs / "one").stat().st_ino, (fs / "two").stat().st_ino)
        self.assertEqual(os.getxattr(fs / "one", "user.colour"), b"blue")
        self.assertNotIn("trusted.overlay.opaque", os.listxattr(fs / "one"))
        self.assertTrue(stat.S_ISFIFO((fs / "pipe").stat().st_mode))
        self.assertEqual((fs / "was-dir").read_bytes(), b"now a file")
        self.assertTrue(
            (fs / "was-file").is_dir() and (fs / "was-link/y").exists() and not (fs / "was-link").is_symlink()
        )
        self.assertEqual(((fs / "high").stat().st_uid, (fs / "high").stat().st_gid), (65534, 65534))

    def test_images_with_a_common_base_share_its_layers(self) -> None:
        base = [[Member("bin/sh", b"#!")], [Member("etc/base", b"b")]]
        images = str(self.top / "images")
        self.layout("on-base-1", [*base, [Member("one", b"1")]])
        self.layout("on-base-2", [*base, [Member("two", b"2"), Member("etc/.wh.base")]])
        self.layout("other-base", [base[1], base[0]])
        first, one = self.good("oci:on-base-1", dir=images, team="shares")
        second, two = self.good("oci:on-base-2", dir=images, team="shares")
        self.assertEqual((len(one["layers"]), one["layers"][1:]), (3, two["layers"][1:]))
        self.assertEqual(two["log"].count("unpacking layer"), 1)
        self.assertEqual(two["log"].count("CACHED layer"), 2)
        self.assertTrue((first / "etc/base").exists() and not (second / "etc/base").exists())
        _, other = self.good("oci:other-base", dir=images, team="shares")
        self.assertEqual(set(other["layers"]) & set(one["layers"]), set(), "what lies below belongs to a layer's name")
        _, foreign = self.good("oci:on-base-1", dir=images, team="stranger")
        self.assertEqual(set(foreign["layers"]) & set(one["layers"]), set())

    def test_layers_stand_on_those_below_them(self) -> None:
        self.layout(
            "upon",
            [
                [
                    Member("usr/lib", kind=DIR, mode=0o711, uid=5),
                    Member("usr/lib/first", b"1", xattrs={"user.colour": "red"}),
                    Member("lib", kind=LINK, link="usr/lib"),
                    Member("home/keep", b"k"),
                    Member("proc", kind=DIR),
                ],
                [
                    Member("lib/second", b"2"),
                    Member("usr/lib/first-too", kind=HARD, link="usr/lib/first"),
                    Member("proc/planted", b"x"),
                    Member("dev/planted", b"x"),
                    Member("usr/lib/cloche/agent", b"x"),
                ],
                [Member("usr/.wh.lib"), Member("usr/lib/third", b"3")],
                [],
            ],
        )
        fs, told = self.good("oci:upon", dir=str(self.top / "images"))
        self.assertEqual(len(told["layers"]), 3, "a layer that changes nothing is none")
        self.assertEqual(sorted(p.name for p in (fs / "usr/lib").iterdir() if p.name != "cloche"), ["third"])
        self.assertEqual((os.readlink(fs / "lib"), (fs / "home/keep").read_bytes()), ("usr/lib", b"k"))
        below = self.merged(told["layers"][1:])
        self.assertEqual((below / "usr/lib/second").read_bytes(), b"2")
        self.assertEqual((below / "usr/lib/first-too").read_bytes(), b"1")
        st = (below / "usr/lib").stat()
        self.assertEqual((stat.S_IMODE(st.st_mode), st.st_uid), (0o711, 5), "a directory nobody named keeps its marks")
        for place in map(Path, told["layers"]):
            self.assertEqual(list(place.rglob("planted")) + list(place.glob("usr/lib/cloche/agent")), [])

    # ---- an image that is its own unpacker ----

    def hostile(self) -> bytes:
        return (BUILD / "tests-boxes" / "hostile_unpack").read_bytes()

    def test_an_image_does_not_bring_the_program_that_unpacks_it(self) -> None:
        planted = {
            "own-unpacker": [Member("usr/lib/cloche/unpack", self.hostile(), mode=0o755)],
            "own-unpacker-by-link": [
                Member("usr/lib", kind=DIR),
                Member("lib", kind=LINK, link="usr/lib"),
                Member("lib/cloche/unpack", self.hostile(), mode=0o755),
            ],
            "own-unpacker-as-link": [
                Member("evil", self.hostile(), mode=0o755),
                Member("usr/lib/cloche", kind=LINK, link="/evil-dir"),
                Member("evil-dir/unpack", self.hostile(), mode=0o755),
            ],
        }
        for name, lowest in planted.items():
            with self.subTest(name):
                self.layout(name, [[*lowest, Member("first", b"1")], [Member("second", b"2")]])
                fs, told = self.good(f"oci:{name}", dir=str(self.top / "images"), team="planter")
                self.assertEqual(((fs / "first").read_bytes(), (fs / "second").read_bytes()), (b"1", b"2"))
                if name != "own-unpacker-by-link":  # through another name it comes where no box looks
                    found = [p for place in map(Path, told["layers"]) for p in place.glob("usr/lib/cloche/*")]
                    self.assertEqual(found, [])

    def test_an_image_does_not_lead_elsewhere_for_its_unpacker(self) -> None:
        for name, links in {
            "led-by-lib": [Member("usr/lib", kind=LINK, link="/evil")],
            "led-by-usr": [Member("usr", kind=LINK, link="/evil-usr")],
        }.items():
            with self.subTest(name):
                programs = [
                    Member(f"{place}/cloche/unpack", self.hostile(), mode=0o755) for place in ("evil", "evil-usr/lib")
                ]
                self.layout(name, [[*links, *programs], [Member("second", b"2")]])
                error = self.bad(f"oci:{name}", dir=str(self.top / "images"), team="planter")
                self.assertIn("a directory is needed on the way to /usr/lib/cloche", error)

    def test_an_unpacker_that_was_taken_over_is_confined(self) -> None:
        runtime = self.top / "hostile-runtime"
        shutil.copytree(BUILD / "runtime", runtime, symlinks=True)
        program = runtime / "usr/lib/cloche/unpack"
        program.write_bytes(self.hostile())
        self.layout("any", [[Member("x", b"1")]])
        said = {
            do: self.bad("oci:any", runtime, dir=str(self.top / "images"), size_mb=do, seconds="40", team="taken")
            for do in ("1", "2", "3", "4", "5")
        }
        wrote = re.search(r"wrote (\d+) MiB", said["1"])
        assert wrote, said
        self.assertTrue(200 < int(wrote[1]) < 300, said)
        self.assertIn("does not read", said["2"])
        self.assertRegex(said["3"], "the kernel refuses it|sent descriptors")
        self.assertIn("protocol error", said["4"])
        self.assertIn("the planted program was run", said["5"])  # the program of this test does what it says

    # ---- a fetch that was taken over ----

    def taken_over(self, program: str) -> str:
        """A search path on which the program that fetches is another one."""
        place = Path(tempfile.mkdtemp(prefix="cloche-taken.", dir="/var/tmp"))  # /tmp is the fetch's own
        self.addCleanup(shutil.rmtree, place)
        place.chmod(0o755)
        own = f"#!/bin/bash\nfor last; do :; done\nlayout=${{last#oci:}}; layout=${{layout%:image}}\n{program}\n"
        (place / "skopeo").write_text(own)
        (place / "skopeo").chmod(0o755)
        return f"{place}:{os.environ['PATH']}"

    def test_a_fetch_that_was_taken_over_finds_no_other_fetch(self) -> None:
        """Both have the same user, so that nothing but their namespaces is between them."""
        neighbour = subprocess.Popen(
            ["setpriv", "--reuid=64991", "--regid=64991", "--clear-groups", "sleep", "300"],
            env={"NEIGHBOUR": "the-secret-of-another-team"},
        )
        self.addCleanup(neighbour.wait)
        self.addCleanup(neighbour.kill)
        made = subprocess.run(["ipcmk", "-M", "4096", "-p", "0666"], capture_output=True, check=True)
        self.addCleanup(subprocess.run, ["ipcrm", "-m", made.stdout.split()[-1].decode()], check=True)
        said = self.bad(
            f"{self.registry.host}/x",
            path=self.taken_over(
                "seen=$(cat /proc/[0-9]*/environ 2>/dev/null | tr '\\0' '\\n' | grep -c the-secret-of-another-team)\n"
                f"kill -0 {neighbour.pid} 2>/dev/null && killed=yes || killed=no\n"
                "shared=$(tail -n +2 /proc/sysvipc/shm | wc -l)\n"
                'echo "level=fatal msg=\"seen $seen killed $killed shared $shared as $(id -u) pid $$\""; exit 1'
            ),
        )
        self.assertIn("seen 0 killed no shared 0 as 64991 pid 1", said)

    def test_what_a_fetch_left_is_neither_followed_nor_waited_for(self) -> None:
        outside = Path(tempfile.mkdtemp(prefix="cloche-outside.", dir="/var/tmp"))
        self.addCleanup(shutil.rmtree, outside)
        (outside / "index.json").write_text('{"schemaVersion":2,"manifests":[]}')
        for name, program in {
            "pipe": "mkdir -p $layout /tmp/blobs/sha256; mkfifo $layout/index.json",
            "link": f"mkdir -p /tmp/blobs/sha256; ln -s {outside} $layout",
            "blob": "mkdir -p $layout /tmp/blobs/sha256; d=$(printf %064d 0); mkfifo /tmp/blobs/sha256/$d;"
            ' echo \'{"schemaVersion":2,"manifests":[{"mediaType":"application/vnd.oci.image.manifest.v1+json",'
            '"size":2,"digest":"sha256:\'$d\'"}]}\' >$layout/index.json',
        }.items():
            with self.subTest(name):
                began = time.monotonic()
                said = self.bad(f"{self.registry.host}/{name}", path=self.taken_over(program), team=name)
                self.assertLess(time.monotonic() - began, 30)
                self.assertRegex(said, "plain file" if name != "blob" else "blob|missing|not there|no such")

    def test_an_image_with_more_layers_than_may_be_kept_apart_is_one(self) -> None:
        layers = [[Member(f"part-{n}", b"x"), Member(".wh.part-0")] for n in range(6)]
        fs, told = self.local("many", layers)
        self.assertEqual(len(told["layers"]), 6)
        one, told = self.good("oci:many", dir=str(self.top / "images"), layers="5", team="few")
        self.assertEqual((len(told["layers"]), self.tree(one)), (1, self.tree(fs)))

    def test_the_limit_holds_for_all_layers_together(self) -> None:
        halves = [[Member("a", b"\1" * (700 << 10))], [Member("b", b"\2" * (700 << 10))]]
        self.assertIn("larger than 1 MiB", self.refused("halves", halves, size_mb="1"))
        self.assertIn(
            "larger than 1 MiB", self.bad("oci:halves", dir=str(self.top / "images"), size_mb="1", layers="0")
        )

    def test_devices_are_left_out_and_told(self) -> None:
        fs, told = self.local("devices", [[Member("dev/null", kind=CHAR, mode=0o666), Member("x", b"1")]])
        self.assertEqual([p.name for p in fs.rglob("*")].count("null"), 0)
        self.assertIn("1 device files were left out", told["log"])

    def test_links_lead_nowhere_outside(self) -> None:
        victim = self.top / "victim"
        victim.mkdir()
        fs, _ = self.local(
            "links",
            [
                [
                    Member(str(victim)[1:], kind=DIR),
                    Member("up", kind=LINK, link="../../../../../../../../.." + str(victim)),
                    Member("abs", kind=LINK, link=str(victim)),
                    Member("up/planted", b"x"),
                    Member("abs/planted2", b"x"),
                ],
            ],
        )
        self.assertEqual(list(victim.iterdir()), [])
        inside = fs / str(victim)[1:]  # links are followed as seen from inside
        self.assertEqual(sorted(p.name for p in inside.iterdir()), ["planted", "planted2"])

    def test_names_that_climb_are_refused(self) -> None:
        self.assertIn(OUTSIDE, self.refused("climb", [[Member("a/../../x", b"1")]]))
        self.assertIn(OUTSIDE, self.refused("climb-upon", [[Member("a/x", b"1")], [Member("a/../../x", b"1")]]))
        self.assertIn(OUTSIDE, self.refused("climb-link", [[Member("x", kind=HARD, link="../../etc/passwd")]]))

    def test_hard_links_reach_nothing_outside(self) -> None:
        self.assertIn("making the hard link", self.refused("hard", [[Member("x", kind=HARD, link="/etc/passwd")]]))
        self.assertIn(
            "making the hard link",
            self.refused(
                "hard2",
                [
                    [
                        Member("etc", kind=DIR),
                        Member("d", kind=LINK, link="/etc"),
                        Member("x", kind=HARD, link="d/passwd"),
                    ]
                ],
            ),
        )

    # ---- lies ----

    def test_a_layer_that_is_not_what_its_digest_says_is_refused(self) -> None:
        path = self.layout(
            "false-diff", [[Member("x", b"1")]], rootfs={"type": "layers", "diff_ids": ["sha256:" + "0" * 64]}
        )
        del path
        self.assertRegex(
            self.bad("oci:false-diff", dir=str(self.top / "images")), "not what its digest|does not match|DiffID"
        )

    def test_a_layer_that_was_changed_in_the_cache_is_refused(self) -> None:
        path = self.layout("changed", [[Member("x", b"precious")]])
        name = self.push(path, self.registry, "changed")
        fs, _ = self.good(name, team="team-c")
        shutil.rmtree(fs.parent)
        blobs = self.top / "data/cache/images/team-c/blobs/sha256"
        biggest = max(blobs.iterdir(), key=lambda p: p.stat().st_mtime)
        for blob in blobs.iterdir():
            if blob.read_bytes()[:2] == b"\x1f\x8b":
                biggest = blob
        biggest.write_bytes(biggest.read_bytes()[:-8] + b"\0" * 8)
        self.assertRegex(self.bad(name, team="team-c"), "broken|not what its digest")

    def test_an_image_of_another_machine_is_refused_by_name(self) -> None:
        self.layout("foreign", [[Member("x", b"1")]], architecture="s390x")
        self.assertIn("s390x", self.bad("oci:foreign", dir=str(self.top / "images")))

    def test_an_image_over_the_limit_is_refused(self) -> None:
        self.assertIn("larger than 1 MiB", self.refused("bomb", [[Member("zeros", b"\0" * (3 << 20))]], size_mb="1"))


class Debian(unittest.TestCase):
    def test_a_release_is_named_by_letters(self) -> None:
        done = subprocess.run([ROOT / "templates" / "debian", "../x", "/nowhere"], stderr=subprocess.PIPE, check=False)
        self.assertEqual(done.returncode, 1)
        self.assertIn(b"is no Debian release", done.stderr)


if __name__ == "__main__":
    unittest.main(verbosity=2)
