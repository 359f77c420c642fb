# SPDX-License-Identifier: Apache-2.0
"""Sandboxes of a Cloche server: code, files, commands, templates.

    from cloche import Sandbox

    with Sandbox.create() as box:
        print(box.run_code("1 + 1").text)

Names are loaded when they are first used, so that importing the package costs next to nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Dict, List

from ._version import __version__ as __version__

if TYPE_CHECKING:
    from ._async.command_handle import (
        AsyncCommandHandle as AsyncCommandHandle,
        AsyncCommandInputHandle as AsyncCommandInputHandle,
    )
    from ._async.execution_handle import AsyncExecutionHandle as AsyncExecutionHandle
    from ._async.files import AsyncFileStreamReader as AsyncFileStreamReader
    from ._async.paginators import (
        AsyncSandboxPaginator as AsyncSandboxPaginator,
        AsyncSecretPaginator as AsyncSecretPaginator,
        AsyncSnapshotPaginator as AsyncSnapshotPaginator,
    )
    from ._async.sandbox import AsyncSandbox as AsyncSandbox
    from ._async.secret import AsyncSecret as AsyncSecret
    from ._async.template import AsyncTemplate as AsyncTemplate
    from ._async.volume import AsyncVolume as AsyncVolume
    from ._async.watch_handle import AsyncWatchHandle as AsyncWatchHandle
    from ._core.api_client import ApiClient as ApiClient
    from ._core.chart_details import (
        Altair as Altair,
        AltairData as AltairData,
        Area as Area,
        AreaData as AreaData,
        ChartDetail as ChartDetail,
        Contour as Contour,
        ContourData as ContourData,
        ErrorBarData as ErrorBarData,
        ErrorBars as ErrorBars,
        Heatmap as Heatmap,
        HeatmapData as HeatmapData,
        Histogram as Histogram,
        HistogramData as HistogramData,
        Plotly as Plotly,
        PlotlyData as PlotlyData,
        Polar as Polar,
        PolarData as PolarData,
        Sampled as Sampled,
        Spatial as Spatial,
        SpatialData as SpatialData,
    )
    from ._core.config import (
        ApiParams as ApiParams,
        ConnectionConfig as ConnectionConfig,
        HttpVersion as HttpVersion,
        ProxyTypes as ProxyTypes,
        VolumeApiParams as VolumeApiParams,
        VolumeConnectionConfig as VolumeConnectionConfig,
    )
    from ._core.files import (
        AsyncWriteData as AsyncWriteData,
        AsyncWriteEntry as AsyncWriteEntry,
        EntryInfo as EntryInfo,
        FilesystemEvent as FilesystemEvent,
        FilesystemEventType as FilesystemEventType,
        FileType as FileType,
        SyncWriteEntry as SyncWriteEntry,
        WriteData as WriteData,
        WriteEntry as WriteEntry,
        WriteInfo as WriteInfo,
    )
    from ._core.git import (
        GitBranches as GitBranches,
        GitFileStatus as GitFileStatus,
        GitResetMode as GitResetMode,
        GitStatus as GitStatus,
    )
    from ._core.network import (
        ALL_TRAFFIC as ALL_TRAFFIC,
        SandboxEgressProxyInfo as SandboxEgressProxyInfo,
        SandboxEgressProxyOpts as SandboxEgressProxyOpts,
        SandboxEgressProxyTLSInfo as SandboxEgressProxyTLSInfo,
        SandboxEgressProxyTLSOpts as SandboxEgressProxyTLSOpts,
        SandboxIamOpts as SandboxIamOpts,
        SandboxIamToken as SandboxIamToken,
        SandboxIamTokenType as SandboxIamTokenType,
        SandboxInfoLifecycle as SandboxInfoLifecycle,
        SandboxLifecycle as SandboxLifecycle,
        SandboxNetworkInfo as SandboxNetworkInfo,
        SandboxNetworkOpts as SandboxNetworkOpts,
        SandboxNetworkRule as SandboxNetworkRule,
        SandboxNetworkRuleInfo as SandboxNetworkRuleInfo,
        SandboxNetworkRules as SandboxNetworkRules,
        SandboxNetworkSelector as SandboxNetworkSelector,
        SandboxNetworkSelectorContext as SandboxNetworkSelectorContext,
        SandboxNetworkTransform as SandboxNetworkTransform,
        SandboxNetworkTransformContext as SandboxNetworkTransformContext,
        SandboxNetworkTransformResolver as SandboxNetworkTransformResolver,
        SandboxNetworkUpdate as SandboxNetworkUpdate,
        SandboxOnResume as SandboxOnResume,
        SandboxOnTimeout as SandboxOnTimeout,
        SnapshotMode as SnapshotMode,
    )
    from ._core.process import (
        CommandExitException as CommandExitException,
        CommandResult as CommandResult,
        ProcessInfo as ProcessInfo,
        PtyOutput as PtyOutput,
        PtySize as PtySize,
        Stderr as Stderr,
        Stdout as Stdout,
        Username as Username,
    )
    from ._core.sandbox import (
        GitHubMcpServer as GitHubMcpServer,
        GitHubMcpServerConfig as GitHubMcpServerConfig,
        McpServer as McpServer,
        SandboxInfo as SandboxInfo,
        SandboxListOrder as SandboxListOrder,
        SandboxMetrics as SandboxMetrics,
        SandboxQuery as SandboxQuery,
        SandboxState as SandboxState,
        SnapshotInfo as SnapshotInfo,
        get_signature as get_signature,
    )
    from ._core.secret import SecretInfo as SecretInfo
    from ._core.template.base import (
        TemplateBase as TemplateBase,
        TemplateBuilder as TemplateBuilder,
        TemplateClass as TemplateClass,
        TemplateFinal as TemplateFinal,
    )
    from ._core.template.logs import (
        LogEntry as LogEntry,
        LogEntryEnd as LogEntryEnd,
        LogEntryLevel as LogEntryLevel,
        LogEntryStart as LogEntryStart,
        default_build_logger as default_build_logger,
    )
    from ._core.template.ready import (
        ReadyCmd as ReadyCmd,
        wait_for_file as wait_for_file,
        wait_for_port as wait_for_port,
        wait_for_process as wait_for_process,
        wait_for_timeout as wait_for_timeout,
        wait_for_url as wait_for_url,
    )
    from ._core.template.types import (
        BuildInfo as BuildInfo,
        BuildStatusReason as BuildStatusReason,
        CopyItem as CopyItem,
        TemplateBuildStatus as TemplateBuildStatus,
        TemplateBuildStatusResponse as TemplateBuildStatusResponse,
        TemplateTag as TemplateTag,
        TemplateTagInfo as TemplateTagInfo,
    )
    from ._core.volume import (
        VolumeAndToken as VolumeAndToken,
        VolumeEntryStat as VolumeEntryStat,
        VolumeFileType as VolumeFileType,
        VolumeInfo as VolumeInfo,
    )
    from ._sync.command_handle import CommandHandle as CommandHandle
    from ._sync.execution_handle import ExecutionHandle as ExecutionHandle
    from ._sync.files import FileStreamReader as FileStreamReader
    from ._sync.git import Git as Git
    from ._sync.paginators import (
        SandboxPaginator as SandboxPaginator,
        SecretPaginator as SecretPaginator,
        SnapshotPaginator as SnapshotPaginator,
    )
    from ._sync.sandbox import Sandbox as Sandbox
    from ._sync.secret import Secret as Secret
    from ._sync.template import Template as Template
    from ._sync.volume import Volume as Volume
    from ._sync.watch_handle import WatchHandle as WatchHandle
    from .charts import (
        BarChart as BarChart,
        BarData as BarData,
        BoxAndWhiskerChart as BoxAndWhiskerChart,
        BoxAndWhiskerData as BoxAndWhiskerData,
        Chart as Chart,
        Chart2D as Chart2D,
        ChartType as ChartType,
        ChartTypes as ChartTypes,
        LineChart as LineChart,
        PieChart as PieChart,
        PieData as PieData,
        PointChart as PointChart,
        PointData as PointData,
        ScaleType as ScaleType,
        ScatterChart as ScatterChart,
        SuperChart as SuperChart,
    )
    from .client import (
        E2B as E2B,
        E2BClientParams as E2BClientParams,
    )
    from .exceptions import (
        AuthenticationException as AuthenticationException,
        BuildException as BuildException,
        ClocheException as ClocheException,
        DockerfileSyntaxError as DockerfileSyntaxError,
        EndCause as EndCause,
        FileNotFoundException as FileNotFoundException,
        FileUploadException as FileUploadException,
        GitAuthException as GitAuthException,
        GitUpstreamException as GitUpstreamException,
        GuestUnresponsiveException as GuestUnresponsiveException,
        InvalidArgumentException as InvalidArgumentException,
        NotEnoughSpaceException as NotEnoughSpaceException,
        NotFoundException as NotFoundException,
        RateLimitException as RateLimitException,
        SandboxException as SandboxException,
        SandboxNotFoundException as SandboxNotFoundException,
        SandboxNotRunningException as SandboxNotRunningException,
        SandboxUnreachableException as SandboxUnreachableException,
        SecretException as SecretException,
        SecretNotFoundException as SecretNotFoundException,
        ServiceBusyException as ServiceBusyException,
        TemplateException as TemplateException,
        TimeoutException as TimeoutException,
        VolumeException as VolumeException,
        VolumeNotFoundException as VolumeNotFoundException,
        VolumePathNotFoundException as VolumePathNotFoundException,
    )
    from .models import (
        Context as Context,
        Execution as Execution,
        ExecutionError as ExecutionError,
        Logs as Logs,
        MIMEType as MIMEType,
        OutputHandler as OutputHandler,
        OutputMessage as OutputMessage,
        Result as Result,
        RunCodeLanguage as RunCodeLanguage,
    )
else:
    _MODULES: Dict[str, str] = {}

    def _modules() -> Dict[str, str]:
        if not _MODULES:
            from ._names import NAMES

            for module, names in NAMES.items():
                _MODULES.update(dict.fromkeys(names.split(), module))
        return _MODULES

    def __getattr__(name: str) -> Any:
        from importlib import import_module

        if name == "__all__":
            return sorted(_modules())
        module = _modules().get(name)
        if module is None:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        value = getattr(import_module(module, __name__), name)
        globals()[name] = value
        return value

    def __dir__() -> List[str]:
        return sorted({*globals(), *_modules()})

