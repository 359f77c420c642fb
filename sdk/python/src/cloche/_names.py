# SPDX-License-Identifier: Apache-2.0
# Made by tools/unasync.py from __init__.py: change that file.
NAMES = {
    "._async.command_handle": "AsyncCommandHandle AsyncCommandInputHandle",
    "._async.execution_handle": "AsyncExecutionHandle",
    "._async.files": "AsyncFileStreamReader",
    "._async.paginators": "AsyncSandboxPaginator AsyncSecretPaginator AsyncSnapshotPaginator",
    "._async.sandbox": "AsyncSandbox",
    "._async.secret": "AsyncSecret",
    "._async.template": "AsyncTemplate",
    "._async.volume": "AsyncVolume",
    "._async.watch_handle": "AsyncWatchHandle",
    "._core.api_client": "ApiClient",
    "._core.chart_details": (
        "Altair AltairData Area AreaData ChartDetail Contour ContourData ErrorBarData ErrorBars Heatmap "
        "HeatmapData Histogram HistogramData Plotly PlotlyData Polar PolarData Sampled Spatial SpatialData "
    ),
    "._core.config": "ApiParams ConnectionConfig HttpVersion ProxyTypes VolumeApiParams VolumeConnectionConfig",
    "._core.files": (
        "AsyncWriteData AsyncWriteEntry EntryInfo FilesystemEvent FilesystemEventType FileType SyncWriteEntry "
        "WriteData WriteEntry WriteInfo "
    ),
    "._core.git": "GitBranches GitFileStatus GitResetMode GitStatus",
    "._core.network": (
        "ALL_TRAFFIC SandboxEgressProxyInfo SandboxEgressProxyOpts SandboxEgressProxyTLSInfo "
        "SandboxEgressProxyTLSOpts SandboxIamOpts SandboxIamToken SandboxIamTokenType SandboxInfoLifecycle "
        "SandboxLifecycle SandboxNetworkInfo SandboxNetworkOpts SandboxNetworkRule SandboxNetworkRuleInfo "
        "SandboxNetworkRules SandboxNetworkSelector SandboxNetworkSelectorContext SandboxNetworkTransform "
        "SandboxNetworkTransformContext SandboxNetworkTransformResolver SandboxNetworkUpdate SandboxOnResume "
        "SandboxOnTimeout SnapshotMode "
    ),
    "._core.process": "CommandExitException CommandResult ProcessInfo PtyOutput PtySize Stderr Stdout Username",
    "._core.sandbox": (
        "GitHubMcpServer GitHubMcpServerConfig McpServer SandboxInfo SandboxListOrder SandboxMetrics "
        "SandboxQuery SandboxState SnapshotInfo get_signature "
    ),
    "._core.secret": "SecretInfo",
    "._core.template.base": "TemplateBase TemplateBuilder TemplateClass TemplateFinal",
    "._core.template.logs": "LogEntry LogEntryEnd LogEntryLevel LogEntryStart default_build_logger",
    "._core.template.ready": "ReadyCmd wait_for_file wait_for_port wait_for_process wait_for_timeout wait_for_url",
    "._core.template.types": (
        "BuildInfo BuildStatusReason CopyItem TemplateBuildStatus TemplateBuildStatusResponse TemplateTag "
        "TemplateTagInfo "
    ),
    "._core.volume": "VolumeAndToken VolumeEntryStat VolumeFileType VolumeInfo",
    "._sync.command_handle": "CommandHandle",
    "._sync.execution_handle": "ExecutionHandle",
    "._sync.files": "FileStreamReader",
    "._sync.git": "Git",
    "._sync.paginators": "SandboxPaginator SecretPaginator SnapshotPaginator",
    "._sync.sandbox": "Sandbox",
    "._sync.secret": "Secret",
    "._sync.template": "Template",
    "._sync.volume": "Volume",
    "._sync.watch_handle": "WatchHandle",
    ".charts": (
        "BarChart BarData BoxAndWhiskerChart BoxAndWhiskerData Chart Chart2D ChartType ChartTypes LineChart "
        "PieChart PieData PointChart PointData ScaleType ScatterChart SuperChart "
    ),
    ".client": "E2B E2BClientParams",
    ".exceptions": (
        "AuthenticationException BuildException ClocheException DockerfileSyntaxError EndCause "
        "FileNotFoundException FileUploadException GitAuthException GitUpstreamException "
        "GuestUnresponsiveException InvalidArgumentException NotEnoughSpaceException NotFoundException "
        "RateLimitException SandboxException SandboxNotFoundException SandboxNotRunningException "
        "SandboxUnreachableException SecretException SecretNotFoundException ServiceBusyException "
        "TemplateException TimeoutException VolumeException VolumeNotFoundException "
        "VolumePathNotFoundException "
    ),
    ".models": "Context Execution ExecutionError Logs MIMEType OutputHandler OutputMessage Result RunCodeLanguage",
}
