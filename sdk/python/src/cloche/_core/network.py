# SPDX-License-Identifier: Apache-2.0
"""Options about a sandbox's network, identity and lifecycle: their types, and from options to JSON and back."""

from __future__ import annotations

import inspect
import re
from dataclasses import dataclass
from typing import Any, Callable, Dict, Iterable, Iterator, List, Literal, Mapping, Optional, TypedDict, Union, cast

from ..exceptions import InvalidArgumentException
from .wire import JsonObject

ALL_TRAFFIC = "0.0.0.0/0"

SnapshotMode = Literal["full", "filesystem"]
SandboxOnResume = Literal["restore", "reboot"]
SandboxIamTokenType = Union[Literal["JWT-SVID"], str]


class SandboxNetworkTransform(TypedDict, total=False):
    headers: Dict[str, str]


@dataclass(frozen=True)
class SandboxNetworkTransformIam:
    tokens: Mapping[str, str]


@dataclass(frozen=True)
class SandboxNetworkTransformContext:
    """What a function that makes a transform is called with."""

    iam: SandboxNetworkTransformIam


SandboxNetworkTransformResolver = Callable[[SandboxNetworkTransformContext], SandboxNetworkTransform]


class SandboxNetworkRule(TypedDict, total=False):
    transform: Union[SandboxNetworkTransform, SandboxNetworkTransformResolver]


class SandboxNetworkRuleInfo(TypedDict, total=False):
    transform: SandboxNetworkTransform


SandboxNetworkRules = Dict[str, List[SandboxNetworkRule]]


@dataclass(frozen=True)
class SandboxNetworkSelectorContext:
    """What a function that selects addresses is called with."""

    all_traffic: str
    rules: Mapping[str, List[SandboxNetworkRule]]


SandboxNetworkSelector = Union[List[str], Callable[[SandboxNetworkSelectorContext], List[str]]]


class SandboxEgressProxyTLSOpts(TypedDict, total=False):
    server_name: str
    ca_cert: str


class _ProxyAddress(TypedDict):
    address: str


class SandboxEgressProxyOpts(_ProxyAddress, total=False):
    username: str
    password: str
    tls: Union[bool, SandboxEgressProxyTLSOpts]


class SandboxEgressProxyTLSInfo(TypedDict, total=False):
    server_name: str


class SandboxEgressProxyInfo(_ProxyAddress, total=False):
    username: str
    tls: SandboxEgressProxyTLSInfo


class SandboxNetworkOpts(TypedDict, total=False):
    """Which addresses a sandbox reaches, and who reaches it."""

    allow_out: SandboxNetworkSelector
    deny_out: SandboxNetworkSelector
    rules: SandboxNetworkRules
    egress_proxy: SandboxEgressProxyOpts
    dns_servers: List[str]
    allow_public_traffic: bool
    mask_request_host: str
    https_ports: List[int]


class SandboxNetworkUpdate(TypedDict, total=False):
    """What `update_network` sets; what it leaves out goes back to the default."""

    allow_out: SandboxNetworkSelector
    deny_out: SandboxNetworkSelector
    rules: SandboxNetworkRules
    egress_proxy: SandboxEgressProxyOpts
    dns_servers: List[str]
    allow_internet_access: bool


class SandboxNetworkInfo(TypedDict, total=False):
    allow_out: List[str]
    deny_out: List[str]
    rules: Dict[str, List[SandboxNetworkRuleInfo]]
    egress_proxy: SandboxEgressProxyInfo
    dns_servers: List[str]
    allow_public_traffic: bool
    mask_request_host: str
    https_ports: List[int]


class SandboxIamToken(TypedDict):
    audience: str
    token_type: SandboxIamTokenType


class SandboxIamOpts(TypedDict, total=False):
    tokens: Dict[str, SandboxIamToken]


class _PauseAction(TypedDict):
    action: Literal["pause"]


class SandboxOnTimeoutPause(_PauseAction, total=False):
    mode: SnapshotMode
    keep_memory: bool


class SandboxOnTimeoutKill(TypedDict):
    action: Literal["kill"]


SandboxOnTimeout = Union[Literal["pause", "kill"], SandboxOnTimeoutPause, SandboxOnTimeoutKill]


class _OnTimeout(TypedDict):
    on_timeout: SandboxOnTimeout


class SandboxLifecycle(_OnTimeout, total=False):
    """What happens when a sandbox's time is over."""

    auto_resume: bool


class SandboxInfoLifecycle(TypedDict):
    on_timeout: Literal["pause", "kill"]
    auto_resume: bool


_BAD_TOKEN_NAME = re.compile(r"[{}\x00-\x1f\x7f-\x9f]")


def token_placeholder(name: str) -> str:
    check_token_name(name)
    return f"${{e2b.identity.tokens.{name}}}"


def check_token_name(name: Any) -> None:
    if not isinstance(name, str) or not name or _BAD_TOKEN_NAME.search(name):
        raise InvalidArgumentException(f"iam token name {name!r} is empty or holds braces or control characters")


class _Tokens(Mapping[str, str]):
    """Placeholders by token name; of registered tokens only where that is known."""

    def __init__(self, names: Iterable[str], strict: bool) -> None:
        self._names = tuple(names)
        self._strict = strict

    def __getitem__(self, name: str) -> str:
        if self._strict and name not in self._names:
            known = ", ".join(map(repr, self._names)) or "none"
            raise InvalidArgumentException(
                f"a network transform uses iam token {name!r}, which is not registered (registered: {known}); pass it "
                "to create as iam={'tokens': {...}}"
            )
        return token_placeholder(name)

    def __contains__(self, name: object) -> bool:
        return name in self._names

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)


def _select(selector: Any, rules: Any) -> Any:
    if callable(selector):
        selector = selector(SandboxNetworkSelectorContext(ALL_TRAFFIC, rules))
    return list(selector)


def _rule_json(host: str, rule: Mapping[str, Any], context: SandboxNetworkTransformContext) -> JsonObject:
    transform: Any = rule.get("transform")
    if transform is None:
        return {}
    if callable(transform):
        transform = transform(context)
        if inspect.isawaitable(transform):
            if inspect.iscoroutine(transform):
                transform.close()
            raise InvalidArgumentException(f"the network transform for {host!r} must not be asynchronous")
        if not isinstance(transform, Mapping):
            raise InvalidArgumentException(f"the network transform for {host!r} must return a dict")
    headers = cast(Mapping[str, Any], transform).get("headers")
    return {"transform": {"headers": dict(headers)} if headers else {}}


def _proxy_json(proxy: Any) -> JsonObject:
    if not isinstance(proxy, Mapping):
        raise InvalidArgumentException("network egress_proxy must be a dict with a string 'address' (host:port)")
    options = cast(Mapping[str, Any], proxy)
    if not isinstance(options.get("address"), str):
        raise InvalidArgumentException("network egress_proxy must be a dict with a string 'address' (host:port)")
    body = {name: options[name] for name in ("address", "username", "password") if options.get(name) is not None}
    tls: Any = options.get("tls")
    if isinstance(tls, bool):
        if tls:
            body["tls"] = {"enabled": True}
    elif isinstance(tls, Mapping):
        settings = cast(Mapping[str, Any], tls)
        if "enabled" in settings:
            raise InvalidArgumentException("network egress_proxy tls takes no 'enabled'; pass tls=True or tls=False")
        body["tls"] = {"enabled": True}
        for name, key in (("server_name", "serverName"), ("ca_cert", "caCert")):
            if settings.get(name) is not None:
                body["tls"][key] = settings[name]
    elif tls is not None:
        raise InvalidArgumentException("network egress_proxy tls must be a bool or a dict")
    return body


def _egress_json(network: Mapping[str, Any], tokens: _Tokens) -> JsonObject:
    rules: Dict[str, Any] = network.get("rules") or {}
    body: JsonObject = {}
    for name, key in (("allow_out", "allowOut"), ("deny_out", "denyOut")):
        if network.get(name) is not None:
            body[key] = _select(network[name], rules)
    if network.get("egress_proxy") is not None:
        body["egressProxy"] = _proxy_json(network["egress_proxy"])
    if network.get("dns_servers") is not None:
        body["dnsServers"] = list(network["dns_servers"])
    if network.get("rules") is not None:
        context = SandboxNetworkTransformContext(SandboxNetworkTransformIam(tokens))
        body["rules"] = {host: [_rule_json(host, rule, context) for rule in some] for host, some in rules.items()}
    return body


def network_json(network: Optional[SandboxNetworkOpts], iam: Optional[JsonObject]) -> Optional[JsonObject]:
    """For a create."""
    if not network:
        return None
    options = cast(Mapping[str, Any], network)
    body = _egress_json(options, _Tokens((iam or {}).get("tokens", {}), strict=True))
    if "allow_public_traffic" in options:
        body["allowPublicTraffic"] = options["allow_public_traffic"]
    if "mask_request_host" in options:
        body["maskRequestHost"] = options["mask_request_host"]
    if options.get("https_ports") is not None:
        body["httpsPorts"] = list(options["https_ports"])
    return body


def network_update_json(network: SandboxNetworkUpdate) -> JsonObject:
    options = cast(Mapping[str, Any], network)
    body = _egress_json(options, _Tokens((), strict=False))
    if "allow_internet_access" in options:
        body["allow_internet_access"] = options["allow_internet_access"]
    return body


def iam_json(iam: Optional[SandboxIamOpts]) -> Optional[JsonObject]:
    tokens: Any = iam.get("tokens") if iam else None
    if not tokens:
        return None
    body: JsonObject = {}
    for name, token in cast(Dict[str, Any], tokens).items():
        valid = isinstance(token, dict)
        fields = cast(Dict[str, Any], token) if valid else {}
        if not isinstance(fields.get("audience"), str) or not isinstance(fields.get("token_type"), str):
            raise InvalidArgumentException(f"iam token {name!r} must be a dict with 'audience' and 'token_type' texts")
        check_token_name(name)
        body[name] = {"audience": fields["audience"], "tokenType": fields["token_type"]}
    return {"tokens": body}


def memory_of(field: str, mode: Optional[str], keep_memory: Optional[bool] = None) -> Optional[bool]:
    """Whether a pause or snapshot holds memory, None where the caller does not say."""
    if mode is None:
        return keep_memory
    if keep_memory is not None:
        raise InvalidArgumentException(f"pass either {field} or keep_memory, not both")
    if mode not in ("full", "filesystem"):
        raise InvalidArgumentException(f"{field} must be one of: full, filesystem (got {mode!r})")
    return mode == "full"


def resume_memory(on_resume: Optional[str]) -> Optional[bool]:
    if on_resume not in (None, "restore", "reboot"):
        raise InvalidArgumentException(f"on_resume must be one of: restore, reboot (got {on_resume!r})")
    return False if on_resume == "reboot" else None


def lifecycle_json(lifecycle: Optional[SandboxLifecycle]) -> JsonObject:
    options = cast(Mapping[str, Any], lifecycle or {})
    asked: Any = options.get("on_timeout")
    details = cast(Dict[str, Any], asked) if isinstance(asked, dict) else {}
    action: Any = details.get("action") if isinstance(asked, dict) else asked
    if asked is not None and action not in ("pause", "kill"):
        field = 'on_timeout["action"]' if details or isinstance(asked, dict) else "on_timeout"
        raise InvalidArgumentException(f"{field} must be one of: pause, kill (got {action!r})")
    if ("mode" in details or "keep_memory" in details) and action != "pause":
        raise InvalidArgumentException("mode is only allowed when the on_timeout action is 'pause'")
    memory = memory_of('on_timeout["mode"]', details.get("mode"), details.get("keep_memory"))
    auto_resume: Optional[bool] = options.get("auto_resume")
    if auto_resume and action != "pause":
        raise InvalidArgumentException("auto_resume can only be True when the on_timeout action is 'pause'")
    if auto_resume and memory is False:
        raise InvalidArgumentException("auto_resume needs the memory that mode 'filesystem' leaves out; use connect")
    body: JsonObject = {}
    if asked is not None:
        body["autoPause"] = action == "pause"
    if action == "pause" and memory is not None:
        body["autoPauseMemory"] = memory
    if auto_resume is not None:
        body["autoResume"] = {"enabled": auto_resume}
    return body


def network_info(data: Any) -> Optional[SandboxNetworkInfo]:
    if not isinstance(data, dict):
        return None
    network = cast(JsonObject, data)
    info: Dict[str, Any] = {}
    for key, name in (
        ("allowOut", "allow_out"), ("denyOut", "deny_out"), ("rules", "rules"), ("dnsServers", "dns_servers"),
        ("allowPublicTraffic", "allow_public_traffic"), ("maskRequestHost", "mask_request_host"),
        ("httpsPorts", "https_ports"),
    ):  # fmt: skip
        if network.get(key) is not None:
            info[name] = network[key]
    proxy: Any = network.get("egressProxy")
    if isinstance(proxy, dict):
        fields = cast(JsonObject, proxy)
        shown: Dict[str, Any] = {"address": fields["address"]}
        if "username" in fields:
            shown["username"] = fields["username"]
        tls: Any = fields.get("tls")
        if isinstance(tls, dict) and cast(JsonObject, tls).get("enabled") is True:
            server_name = cast(JsonObject, tls).get("serverName")
            shown["tls"] = {} if server_name is None else {"server_name": server_name}
        info["egress_proxy"] = shown
    return cast(SandboxNetworkInfo, info)


def lifecycle_info(data: Any) -> Optional[SandboxInfoLifecycle]:
    if not isinstance(data, dict):
        return None
    fields = cast(JsonObject, data)
    return {"on_timeout": fields["onTimeout"], "auto_resume": fields["autoResume"]}
