# SPDX-License-Identifier: Apache-2.0
"""The builder of templates: each call adds a step, and remembers the line of the program that asked for it."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from shlex import quote
from types import FrameType, TracebackType
from typing import Any, Dict, List, Literal, Optional, Union

from ...exceptions import BuildException, InvalidArgumentException, TemplateException
from ..wire import JsonObject
from .context import check_relative, files_hash, read_dockerignore
from .dockerfile import convert
from .ready import ReadyCmd, wait_for_file
from .types import GZIP, AnyPath, CopyItem, Step

_PACKAGE = str(Path(__file__).resolve().parents[2]) + os.sep
DEFAULT_IMAGE = "e2bdev/base"


def caller() -> Optional[FrameType]:
    """The first frame outside of this package."""
    frame: Optional[FrameType] = sys._getframe(1)  # pyright: ignore[reportPrivateUsage]
    while frame is not None and os.path.abspath(frame.f_code.co_filename).startswith(_PACKAGE):
        frame = frame.f_back
    return frame


def trace() -> Optional[TracebackType]:
    frame = caller()
    return None if frame is None else TracebackType(None, frame, frame.f_lasti, frame.f_lineno)


def _listed(value: Any) -> List[str]:
    return [str(value)] if isinstance(value, (str, Path)) else [str(one) for one in value or ()]


class Recipe:
    """What a template is made of."""

    def __init__(self, context: str, ignore: List[str]) -> None:
        self.context = context
        self.ignore = ignore
        self.image: Optional[str] = DEFAULT_IMAGE
        self.template: Optional[str] = None
        self.registry: Optional[Dict[str, str]] = None
        self.start_cmd: Optional[str] = None
        self.ready_cmd: Optional[str] = None
        self.force = False
        self.force_next = False
        self.steps: List[Step] = []
        self.traces: List[Optional[TracebackType]] = []

    def add(self, type: str, args: List[str], **more: Any) -> None:
        force = bool(more.get("force_upload")) or self.force_next
        self.steps.append(Step(type, args, force, **more))
        self.traces.append(trace())

    def begin(self) -> None:
        """Called when the base is known."""
        self.force = self.force or self.force_next
        self.traces.insert(0, trace())

    def patterns(self) -> List[str]:
        return [*read_dockerignore(self.context), *self.ignore]

    def hash_files(self) -> None:
        for at, step in enumerate(self.steps):
            if step.type == "COPY":
                src, dest = step.args[0], step.args[1]
                try:
                    step.files_hash = files_hash(src, dest, self.context, self.patterns(), step.resolve_symlinks)
                except ValueError as error:
                    raise error.with_traceback(self.trace_of(at)) from None

    def trace_of(self, step: int) -> Optional[TracebackType]:
        return self.traces[step + 1] if step + 1 < len(self.traces) else None

    def trace_of_word(self, word: Optional[str]) -> Optional[TracebackType]:
        """The line behind a step as the server names it: `base`, a number, `finalize`."""
        places = {"base": 0, "finalize": len(self.traces) - 1}
        at = places.get(word or "", int(word) if word and word.isdigit() else -1)
        return self.traces[at] if 0 <= at < len(self.traces) else None

    def to_json(self) -> JsonObject:
        body: JsonObject = {"steps": [step.to_json() for step in self.steps], "force": self.force}
        for key, value in (
            ("fromImage", self.image), ("fromTemplate", self.template), ("fromImageRegistry", self.registry),
            ("startCmd", self.start_cmd), ("readyCmd", self.ready_cmd),
        ):  # fmt: skip
            if value is not None:
                body[key] = value
        return body

    def to_dockerfile(self) -> str:
        if self.template is not None:
            raise ValueError("Cannot convert template built from another template to Dockerfile.")
        if self.image is None:
            raise ValueError("No base image specified for template")
        lines = [f"FROM {self.image}"]
        for step in self.steps:
            args = step.args
            if step.type == "RUN":
                lines.append(f"RUN {args[0]}")
            elif step.type == "COPY":
                lines.append(f"COPY {args[0]} {args[1]}")
            elif step.type == "ENV":
                pairs = zip(args[::2], args[1::2])
                lines.append("ENV " + " ".join(f"{name}={value}" for name, value in pairs))
            else:
                lines.append(f"{step.type} {' '.join(args)}")
        if self.start_cmd:
            lines.append(f"ENTRYPOINT {self.start_cmd}")
        return "\n".join(lines) + "\n"


class TemplateFinal:
    """A template with a start command, to which nothing can be added."""

    def __init__(self, template: TemplateBase) -> None:
        self.recipe = template.recipe


class TemplateBuilder:
    """A template with a base, to which steps are added."""

    def __init__(self, template: TemplateBase) -> None:
        self._template = template
        self.recipe = template.recipe

    def _run(self, *words: Optional[str], user: Optional[str] = None) -> TemplateBuilder:
        return self.run_cmd(" ".join(word for word in words if word), user)

    def copy(
        self,
        src: Union[AnyPath, List[AnyPath]],
        dest: AnyPath,
        force_upload: Optional[Literal[True]] = None,
        user: Optional[str] = None,
        mode: Optional[int] = None,
        resolve_symlinks: Optional[bool] = None,
        gzip: Optional[bool] = None,
    ) -> TemplateBuilder:
        """Copy files of the context directory into the template."""
        for one in _listed(src):
            check_relative(one)
            args = [one, str(dest), user or "", "" if mode is None else f"{mode:04o}"]
            self.recipe.add(
                "COPY",
                args,
                force_upload=force_upload,
                resolve_symlinks=bool(resolve_symlinks),
                gzip=GZIP if gzip is None else gzip,
            )
        return self

    def copy_items(self, items: List[CopyItem]) -> TemplateBuilder:
        """Copy several things, each with settings of its own."""
        for item in items:
            self.copy(
                item["src"],
                item["dest"],
                item.get("forceUpload"),
                item.get("user"),
                item.get("mode"),
                item.get("resolveSymlinks"),
                item.get("gzip"),
            )
        return self

    def remove(
        self,
        path: Union[AnyPath, List[AnyPath]],
        force: bool = False,
        recursive: bool = False,
        user: Optional[str] = None,
    ) -> TemplateBuilder:
        """Remove files."""
        paths = map(quote, _listed(path))
        return self._run("rm", "-r" if recursive else None, "-f" if force else None, *paths, user=user)

    def rename(
        self, src: AnyPath, dest: AnyPath, force: bool = False, user: Optional[str] = None
    ) -> TemplateBuilder:
        """Move a file."""
        return self._run("mv", quote(str(src)), quote(str(dest)), "-f" if force else None, user=user)

    def make_dir(
        self, path: Union[AnyPath, List[AnyPath]], mode: Optional[int] = None, user: Optional[str] = None
    ) -> TemplateBuilder:
        """Make directories and those above them."""
        paths = map(quote, _listed(path))
        return self._run("mkdir", "-p", None if mode is None else f"-m {mode:04o}", *paths, user=user)

    def make_symlink(
        self, src: AnyPath, dest: AnyPath, user: Optional[str] = None, force: bool = False
    ) -> TemplateBuilder:
        """Make a symbolic link at `dest`."""
        return self._run("ln", "-s", "-f" if force else None, quote(str(src)), quote(str(dest)), user=user)

    def run_cmd(self, command: Union[str, List[str]], user: Optional[str] = None) -> TemplateBuilder:
        """Run a command, or several of which each needs the success of the former."""
        text = command if isinstance(command, str) else " && ".join(command)
        self.recipe.add("RUN", [text, user] if user else [text])
        return self

    def set_workdir(self, workdir: AnyPath) -> TemplateBuilder:
        """The directory in which later steps and the sandboxes' commands run."""
        self.recipe.add("WORKDIR", [str(workdir)])
        return self

    def set_user(self, user: str) -> TemplateBuilder:
        """Who runs later steps and the sandboxes' commands."""
        self.recipe.add("USER", [user])
        return self

    def set_envs(self, envs: Dict[str, str]) -> TemplateBuilder:
        """Variables of later steps and of the sandboxes."""
        if envs:
            self.recipe.add("ENV", [part for pair in envs.items() for part in pair])
        return self

    def pip_install(self, packages: Optional[Union[str, List[str]]] = None, g: bool = True) -> TemplateBuilder:
        """Install Python packages, the context's own without names; `g` for all users."""
        names = _listed(packages) or ["."]
        return self._run("pip", "install", None if g else "--user", *names, user="root" if g else None)

    def npm_install(
        self,
        packages: Optional[Union[str, List[str]]] = None,
        g: Optional[bool] = False,
        dev: Optional[bool] = False,
    ) -> TemplateBuilder:
        """Install npm packages; `g` for all users."""
        flags = ["-g" if g else None, "--save-dev" if dev else None]
        return self._run("npm", "install", *flags, *_listed(packages), user="root" if g else None)

    def bun_install(
        self,
        packages: Optional[Union[str, List[str]]] = None,
        g: Optional[bool] = False,
        dev: Optional[bool] = False,
    ) -> TemplateBuilder:
        """Install packages with bun; `g` for all users."""
        flags = ["-g" if g else None, "--dev" if dev else None]
        return self._run("bun", "install", *flags, *_listed(packages), user="root" if g else None)

    def apt_install(
        self, packages: Union[str, List[str]], no_install_recommends: bool = False, fix_missing: bool = False
    ) -> TemplateBuilder:
        """Install packages of the distribution."""
        flags = ["--no-install-recommends"] if no_install_recommends else []
        flags += ["--fix-missing"] if fix_missing else []
        words = ["DEBIAN_FRONTEND=noninteractive DEBCONF_NOWARNINGS=yes apt-get install -y", *flags, *_listed(packages)]
        return self.run_cmd(["apt-get update", " ".join(words)], user="root")

    def add_mcp_server(self, servers: Union[str, List[str]]) -> TemplateBuilder:
        """Fetch MCP servers ahead, on template `mcp-gateway` only."""
        self._needs("mcp-gateway", "MCP servers can only be added to mcp-gateway template")
        return self._run("mcp-gateway", "pull", *_listed(servers), user="root")

    def git_clone(
        self,
        url: str,
        path: Optional[AnyPath] = None,
        branch: Optional[str] = None,
        depth: Optional[int] = None,
        user: Optional[str] = None,
    ) -> TemplateBuilder:
        """Clone a repository."""
        return self._run(
            "git",
            "clone",
            quote(url),
            f"--branch {quote(branch)} --single-branch" if branch else None,
            f"--depth {depth}" if depth else None,
            quote(str(path)) if path else None,
            user=user,
        )

    def beta_dev_container_prebuild(self, devcontainer_directory: AnyPath) -> TemplateBuilder:
        """Build a dev container, on template `devcontainer` only."""
        self._needs("devcontainer", "Devcontainers can only be used in the devcontainer template")
        return self._run("devcontainer build --workspace-folder", quote(str(devcontainer_directory)), user="root")

    def beta_set_dev_container_start(self, devcontainer_directory: AnyPath) -> TemplateFinal:
        """Start a dev container in every sandbox, on template `devcontainer` only."""
        self._needs("devcontainer", "Devcontainers can only be used in the devcontainer template")
        where = quote(str(devcontainer_directory))
        start = (
            f"sudo devcontainer up --workspace-folder {where} && sudo /prepare-exec.sh {where} | "
            "sudo tee /devcontainer.sh > /dev/null && sudo chmod +x /devcontainer.sh && sudo touch /devcontainer.up"
        )
        return self.set_start_cmd(start, wait_for_file("/devcontainer.up"))

    def skip_cache(self) -> TemplateBuilder:
        """Run all later steps even if nothing changed."""
        self.recipe.force_next = True
        return self

    def set_start_cmd(self, start_cmd: str, ready_cmd: Union[str, ReadyCmd]) -> TemplateFinal:
        """A command that runs in every sandbox; the build waits until `ready_cmd` succeeds."""
        self.recipe.start_cmd = start_cmd
        return self.set_ready_cmd(ready_cmd)

    def set_ready_cmd(self, ready_cmd: Union[str, ReadyCmd]) -> TemplateFinal:
        """A command that succeeds once sandboxes are ready to be used."""
        self.recipe.ready_cmd = ready_cmd.get_cmd() if isinstance(ready_cmd, ReadyCmd) else ready_cmd
        self.recipe.traces.append(trace())
        return TemplateFinal(self._template)

    def _needs(self, template: str, why: str) -> None:
        if self.recipe.template != template:
            raise BuildException(why).with_traceback(trace())


TemplateClass = Union[TemplateFinal, TemplateBuilder]


class TemplateBase:
    """A template without a base: `from_...` gives it one. Paths of `copy` are relative to the caller's directory."""

    def __init__(
        self,
        file_context_path: Optional[AnyPath] = None,
        file_ignore_patterns: Optional[List[str]] = None,
    ) -> None:
        frame = caller()
        own = os.path.dirname(os.path.abspath(frame.f_code.co_filename)) if frame else "."
        self.recipe = Recipe(str(file_context_path) if file_context_path else own, list(file_ignore_patterns or []))

    def skip_cache(self) -> TemplateBase:
        """Run all steps even if nothing changed."""
        self.recipe.force_next = True
        return self

    def _from(self, image: Optional[str], template: Optional[str] = None) -> TemplateBuilder:
        self.recipe.image, self.recipe.template = image, template
        self.recipe.begin()
        return TemplateBuilder(self)

    def from_debian_image(self, variant: str = "stable") -> TemplateBuilder:
        """Debian."""
        return self._from(f"debian:{variant}")

    def from_ubuntu_image(self, variant: str = "latest") -> TemplateBuilder:
        """Ubuntu."""
        return self._from(f"ubuntu:{variant}")

    def from_fedora_image(self, variant: str = "44") -> TemplateBuilder:
        """Fedora."""
        return self._from(f"fedora:{variant}")

    def from_alpine_image(self, variant: str = "3.24") -> TemplateBuilder:
        """Alpine Linux."""
        return self._from(f"alpine:{variant}")

    def from_arch_image(self, variant: str = "latest") -> TemplateBuilder:
        """Arch Linux."""
        return self._from(f"archlinux:{variant}")

    def from_python_image(self, version: str = "3") -> TemplateBuilder:
        """The image of Python."""
        return self._from(f"python:{version}")

    def from_node_image(self, variant: str = "lts") -> TemplateBuilder:
        """The image of Node."""
        return self._from(f"node:{variant}")

    def from_bun_image(self, variant: str = "latest") -> TemplateBuilder:
        """The image of Bun."""
        return self._from(f"oven/bun:{variant}")

    def from_base_image(self) -> TemplateBuilder:
        """The server's base."""
        return self._from(DEFAULT_IMAGE)

    def from_image(
        self, image: str, username: Optional[str] = None, password: Optional[str] = None
    ) -> TemplateBuilder:
        """An image of a registry, with credentials if it needs them."""
        if username is not None or password is not None:
            if not username or not password:
                why = "Both username and password are required when providing registry credentials"
                raise InvalidArgumentException(why).with_traceback(trace())
            self.recipe.registry = {"type": "registry", "username": username, "password": password}
        return self._from(image)

    def from_template(self, template: str) -> TemplateBuilder:
        """Another template."""
        return self._from(None, template)

    def from_dockerfile(self, dockerfile_content_or_path: str) -> TemplateBuilder:
        """A Dockerfile, as text or by its path."""
        builder = TemplateBuilder(self)
        self.recipe.image, self.recipe.template = convert(dockerfile_content_or_path, builder), None
        self.recipe.begin()
        return builder

    def from_aws_registry(
        self, image: str, access_key_id: str, secret_access_key: str, region: str
    ) -> TemplateBuilder:
        """An image of a registry at AWS."""
        self.recipe.registry = {
            "type": "aws",
            "awsAccessKeyId": access_key_id,
            "awsSecretAccessKey": secret_access_key,
            "awsRegion": region,
        }
        return self._from(image)

    def from_gcp_registry(self, image: str, service_account_json: Union[str, Dict[str, Any]]) -> TemplateBuilder:
        """An image of a registry at Google; the account as a dict or as a file of the context."""
        if isinstance(service_account_json, str):
            with open(os.path.join(self.recipe.context, service_account_json), encoding="utf-8") as file:
                account = file.read()
        else:
            account = json.dumps(service_account_json)
        self.recipe.registry = {"type": "gcp", "serviceAccountJson": account}
        return self._from(image)

    @staticmethod
    def to_json(template: TemplateClass) -> str:
        """The template as the server gets it."""
        template.recipe.hash_files()
        return json.dumps(template.recipe.to_json(), indent=2)

    @staticmethod
    def to_dockerfile(template: TemplateClass) -> str:
        """The template as a Dockerfile."""
        return template.recipe.to_dockerfile()


def build_name(name: Optional[str], alias: Optional[str]) -> str:
    if not name and not alias:
        raise TemplateException("Name must be provided")
    return str(name or alias)
