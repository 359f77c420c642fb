# SPDX-License-Identifier: Apache-2.0
"""Templates that begin with images, built by the stock SDK."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import e2b
import pytest

from support.recipes import Workshop, fresh
from support.registry import Member, Registry, small_image


@pytest.fixture(scope="module")
def registry(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Registry]:
    made = Registry(tmp_path_factory.mktemp("registry"))
    yield made
    made.stop()


@pytest.fixture(scope="module", params=["sync", "async"])
def workshop(request: pytest.FixtureRequest) -> Workshop:
    return Workshop(request.param)


async def test_a_template_from_a_registrys_image_has_its_files_and_environment(
    registry: Registry, workshop: Workshop, tmp_path: Path
) -> None:
    layout = small_image(tmp_path / "image", Member("srv/word", b"from the image"))
    image = registry.push(layout, f"{fresh('image')}:1")
    name = fresh("from-image")
    recipe = (
        workshop.template()
        .from_image(image)
        .run_cmd("echo built > /home/user/made; env > /tmp/env")
    )
    await workshop.build(recipe, name)
    box = await workshop.box(name)
    try:
        assert await box.files.read("/srv/word") == "from the image"
        assert await box.files.read("/home/user/made") == "built\n"
        assert "FROM_IMAGE=yes" in await box.files.read("/tmp/env")
        told = await box.commands.run("id -u; echo $FROM_IMAGE")
        assert told.stdout.split() == ["1000", "yes"]
    finally:
        await box.kill()
    await workshop.build(recipe, name)
    assert not [text for text in workshop.messages if "unpacking layer" in text]


async def test_an_image_that_is_not_there_fails_the_base(
    registry: Registry, workshop: Workshop
) -> None:
    recipe = workshop.template().from_image(f"{registry.host}/nobody/home:1")
    with pytest.raises(e2b.BuildException, match="(?i)unknown|not found"):
        await workshop.build(recipe, fresh("absent"))


async def test_a_registry_that_is_not_allowed_is_named(workshop: Workshop) -> None:
    recipe = workshop.template().from_image("registry.example/x:1")
    with pytest.raises(e2b.BuildException, match="registry.example.*image_registries"):
        await workshop.build(recipe, fresh("forbidden"))


async def test_an_image_with_a_climbing_entry_fails_the_base_and_leaves_nothing(
    registry: Registry, workshop: Workshop, tmp_path: Path
) -> None:
    layout = small_image(tmp_path / "evil", Member("a/../../../../tmp/cloche-climbed", b"x"))
    image = registry.push(layout, f"{fresh('evil')}:1")
    with pytest.raises(e2b.BuildException, match="leaves the directory"):
        await workshop.build(workshop.template().from_image(image), fresh("evil"))
    assert not Path("/tmp/cloche-climbed").exists()


async def test_the_sdks_default_image_is_our_own_template(workshop: Workshop) -> None:
    name = fresh("plain")
    await workshop.build(
        workshop.template().from_base_image().run_cmd("echo x > /home/user/x"), name
    )
    box = await workshop.box(name)
    try:
        assert await box.files.read("/home/user/x") == "x\n"
    finally:
        await box.kill()


@pytest.mark.timeout(600)
async def test_a_debian_release_is_made_from_packages_where_no_registry_can_be_asked() -> None:
    workshop, name = Workshop("sync"), fresh("debian")
    recipe = workshop.template().from_debian_image("bookworm").run_cmd("sudo id -u > ~/who")
    await workshop.build(recipe, name)
    assert [text for text in workshop.messages if "building Debian bookworm from packages" in text]
    box = await workshop.box(name)
    try:
        told = await box.commands.run(
            "cat /etc/debian_version who; id -un; pwd; command -v ss curl pgrep"
        )
        lines = told.stdout.split()
        assert lines[0].startswith("12.")
        assert lines[1:4] == ["0", "user", "/home/user"]
        assert len(lines) == 7
    finally:
        await box.kill()
    again = fresh("debian-again")
    await workshop.build(recipe, again)
    assert not [text for text in workshop.messages if "unpacking" in text]
