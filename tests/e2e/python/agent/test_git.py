# SPDX-License-Identifier: Apache-2.0
"""git: every method of the SDK's git module against a local repository and a local daemon."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio
from e2b import GitUpstreamException

from support.either import Either

AUTHOR = {"author_name": "Ada", "author_email": "ada@example.org"}


@pytest_asyncio.fixture
async def repo(box: Either, unique: str) -> AsyncIterator[str]:
    path = f"/tmp/test-git/{unique}"
    await box.git.init(path, initial_branch="main")
    await box.files.write(f"{path}/README.md", "# readme\n")
    await box.git.add(path)
    await box.git.commit(path, "First", **AUTHOR)
    yield path
    await box.files.remove(path)


async def test_init_makes_repositories_bare_or_not(box: Either, unique: str) -> None:
    await box.git.init(f"/tmp/{unique}.git", bare=True, initial_branch="trunk")
    done = await box.commands.run(f"git -C /tmp/{unique}.git rev-parse --is-bare-repository")
    assert done.stdout == "true\n"
    assert await box.files.read(f"/tmp/{unique}.git/HEAD") == "ref: refs/heads/trunk\n"


async def test_status_tells_branch_and_files(box: Either, repo: str) -> None:
    status = await box.git.status(repo)
    assert (status.current_branch, status.detached, status.ahead) == ("main", False, 0)
    assert status.file_status == []
    await box.files.write(f"{repo}/README.md", "changed\n")
    await box.files.write(f"{repo}/new.txt", "new\n")
    files = {file.name: file for file in (await box.git.status(repo)).file_status}
    assert files["README.md"].status == "modified"
    assert not files["README.md"].staged
    assert files["new.txt"].status == "untracked"
    await box.git.add(repo, files=["new.txt"])
    files = {file.name: file for file in (await box.git.status(repo)).file_status}
    assert files["new.txt"].staged
    assert files["new.txt"].status == "added"


async def test_commit_names_its_author(box: Either, repo: str) -> None:
    await box.git.commit(repo, "Empty one", allow_empty=True, **AUTHOR)
    done = await box.commands.run(f"git -C {repo} log -1 --format='%an <%ae> %s'")
    assert done.stdout == "Ada <ada@example.org> Empty one\n"


async def test_branches_are_created_listed_and_deleted(box: Either, repo: str) -> None:
    await box.git.create_branch(repo, "feature")
    branches = await box.git.branches(repo)
    assert branches.current_branch == "feature"
    assert set(branches.branches) == {"main", "feature"}
    await box.git.checkout_branch(repo, "main")
    assert (await box.git.branches(repo)).current_branch == "main"
    await box.git.delete_branch(repo, "feature", force=True)
    assert (await box.git.branches(repo)).branches == ["main"]


async def test_reset_and_restore_bring_back_what_was_committed(box: Either, repo: str) -> None:
    await box.files.write(f"{repo}/README.md", "changed\n")
    await box.git.add(repo)
    await box.git.restore(repo, ["README.md"], staged=True)
    assert not (await box.git.status(repo)).file_status[0].staged
    await box.git.restore(repo, ["README.md"])
    assert await box.files.read(f"{repo}/README.md") == "# readme\n"
    await box.files.write(f"{repo}/README.md", "changed\n")
    await box.git.reset(repo, mode="hard", target="HEAD")
    assert await box.files.read(f"{repo}/README.md") == "# readme\n"


async def test_config_of_a_repository(box: Either, repo: str) -> None:
    await box.git.set_config("user.nickname", "Countess", scope="local", path=repo)
    assert await box.git.get_config("user.nickname", scope="local", path=repo) == "Countess"
    assert await box.git.get_config("user.nobody", scope="local", path=repo) is None


async def test_configure_user_is_global(box: Either, repo: str) -> None:
    await box.git.configure_user("Grace", "grace@example.org")
    assert await box.git.get_config("user.name", scope="global") == "Grace"
    await box.git.commit(repo, "By Grace", allow_empty=True)
    done = await box.commands.run(f"git -C {repo} log -1 --format=%an")
    assert done.stdout == "Grace\n"


async def test_remotes_push_clone_and_pull(box: Either, repo: str, unique: str) -> None:
    remote = f"/tmp/{unique}-remote.git"
    copy = f"/tmp/{unique}-copy"
    await box.git.init(remote, bare=True, initial_branch="main")
    await box.git.remote_add(repo, "origin", remote)
    assert await box.git.remote_get(repo, "origin") == remote
    assert await box.git.remote_get(repo, "elsewhere") is None
    await box.git.push(repo, remote="origin", branch="main", set_upstream=True)
    await box.git.clone(remote, path=copy, branch="main")
    assert await box.files.read(f"{copy}/README.md") == "# readme\n"
    await box.files.write(f"{repo}/second.txt", "2\n")
    await box.git.add(repo)
    await box.git.commit(repo, "Second", **AUTHOR)
    assert (await box.git.status(repo)).ahead == 1
    await box.git.push(repo)
    await box.git.pull(copy)
    assert await box.files.read(f"{copy}/second.txt") == "2\n"


async def test_a_branch_without_upstream_cannot_be_pulled(box: Either, repo: str) -> None:
    await box.git.remote_add(repo, "origin", "/tmp/nowhere.git")
    with pytest.raises(GitUpstreamException):
        await box.git.pull(repo)


async def test_over_the_network_of_the_box(box: Either, repo: str, unique: str) -> None:
    base = f"/tmp/{unique}-served"
    await box.git.init(f"{base}/repo.git", bare=True, initial_branch="main")
    port = 9418 + (100 if box.is_async else 0)
    daemon = await box.commands.run(
        f"git daemon --reuseaddr --base-path={base} --export-all --enable=receive-pack "
        f"--listen=127.0.0.1 --port={port} {base}",
        background=True,
        timeout=0,
    )
    url = f"git://127.0.0.1:{port}/repo.git"
    await box.commands.run(
        f"for n in $(seq 50); do git ls-remote {url} && exit 0; sleep 0.1; done; exit 1"
    )
    await box.git.remote_add(repo, "origin", url)
    await box.git.push(repo, remote="origin", branch="main", set_upstream=True)
    await box.git.clone(url, path=f"{base}/clone", depth=1)
    assert await box.files.read(f"{base}/clone/README.md") == "# readme\n"
    await daemon.kill()


async def test_credentials_are_stored_for_the_host_they_were_given_for(box: Either) -> None:
    await box.git.dangerously_authenticate("ada", "secret", host="git.example.org")
    assert await box.git.get_config("credential.helper", scope="global") == "store"
    stored = await box.files.read("/home/user/.git-credentials")
    assert "https://ada:secret@git.example.org" in stored
