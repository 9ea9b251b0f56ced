"""Report of the benchmark: the table, and the flat keys of var/bench.json."""

SERVERS = {
    "uvicorn": "product, uvicorn",
    "daphne": "product, daphne",
    "sdk_database": "SDK, database",
    "sdk_memory": "SDK, memory",
}
# Rows of the table: name, key, and whether a higher value is better.
_ROWS = (
    ("SendMessage, blocking, per second", "send_per_second", True),
    ("  median, ms", "send_median_ms", False),
    ("  99 of 100 within, ms", "send_p99_ms", False),
    ("  processor time of all processes, ms each", "send_cpu_ms", False),
    ("SendMessage, returnImmediately, per second", "immediate_per_second", True),
    ("  until all of those tasks were done, per second", "work_per_second", True),
    ("GetTask, per second", "get_per_second", True),
    ("  99 of 100 within, ms", "get_p99_ms", False),
    ("  processor time of all processes, ms each", "get_cpu_ms", False),
    ("SendStreamingMessage, whole streams per second", "stream_per_second", True),
    ("  first event, median, ms", "first_event_median_ms", False),
    ("  first event, 99 of 100 within, ms", "first_event_p99_ms", False),
    ("ListTasks, 50 of 100,000, per second", "list_per_second", True),
    ("SendMessage, skill notify-user, per second", "notify_per_second", True),
    ("  median, ms", "notify_median_ms", False),
    ("  processor time of all processes, ms each", "notify_cpu_ms", False),
    ("webhooks, notifications per second", "push_per_second", True),
    ("  from the change to its arrival, median, ms", "push_delay_median_ms", False),
    ("  from the change to its arrival, 99 of 100 within, ms", "push_delay_p99_ms", False),
    ("  processor time of all processes, ms each", "push_cpu_ms", False),
)
_MEMORY = ("web", "worker", "background", "postgres", "valkey")
_RATIOS = {
    "send": "send_per_second",
    "immediate": "immediate_per_second",
    "get": "get_per_second",
    "stream": "stream_per_second",
    "list": "list_per_second",
}
# Targets of the product, as ratios within one run.
TARGETS = {
    "send_vs_sdk_database": 3.0,
    "get_vs_sdk_database": 2.0,
    "send_vs_sdk_memory": 0.5,
    "notify_vs_send": 2.0,
}


def flatten(values: dict[str, float]) -> dict[str, float]:
    """Returns the rounded values, and the ratios of the product on uvicorn to the SDK's server.

    Ratios of times are inverted, so that a higher ratio is always better.
    """
    flat = {name: round(value, 2) for name, value in values.items()}
    notify, send = values.get("uvicorn_notify_per_second"), values.get("uvicorn_send_per_second")
    if notify and send:
        flat["notify_vs_send"] = round(notify / send, 4)
    for peer in ("sdk_database", "sdk_memory"):
        for name, key in _RATIOS.items():
            ours, theirs = values.get(f"uvicorn_{key}"), values.get(f"{peer}_{key}")
            if ours and theirs:
                flat[f"{name}_vs_{peer}"] = round(ours / theirs, 4)
        ours, theirs = values.get("uvicorn_first_event_median_ms"), values.get(f"{peer}_first_event_median_ms")
        if ours and theirs:
            flat[f"first_event_vs_{peer}"] = round(theirs / ours, 4)
    return flat


def table(flat: dict[str, float]) -> str:
    """Returns the table as text, with the ratios on the right and the targets below."""
    shown = [server for server in SERVERS if any(name.startswith(f"{server}_") for name in flat)]
    rows = [["", *(SERVERS[server] for server in shown), "to database", "to memory"]]
    for title, key, more_is_better in _ROWS:
        cells = [_number(flat.get(f"{server}_{key}")) for server in shown]
        rows.append(
            [title, *cells, *(_ratio(flat, key, peer, more_is_better) for peer in ("sdk_database", "sdk_memory"))]
        )
    for process in _MEMORY:
        cells = [_memory(flat, server, process) for server in shown]
        if any(cell != "-" for cell in cells):
            rows.append([f"memory of {process}, RSS/PSS in MB", *cells, "", ""])
    lines = _aligned([row for row in rows if any(cell not in ("", "-") for cell in row[1:])])
    for name, target in TARGETS.items():
        if name in flat:
            lines.append(f"{name}: {flat[name]:.3f}, to reach {target:g}: {'yes' if flat[name] >= target else 'NO'}")
    return "\n".join(lines)


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:,.1f}"


def _ratio(flat: dict[str, float], key: str, peer: str, more_is_better: bool) -> str:
    ours, theirs = flat.get(f"uvicorn_{key}"), flat.get(f"{peer}_{key}")
    if not ours or not theirs:
        return "-"
    return f"{ours / theirs if more_is_better else theirs / ours:.2f}x"


def _memory(flat: dict[str, float], server: str, process: str) -> str:
    rss = flat.get(f"{server}_{process}_rss_mb")
    return "-" if rss is None else f"{rss:.0f}/{flat[f'{server}_{process}_pss_mb']:.0f}"


def _aligned(rows: list[list[str]]) -> list[str]:
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    return [
        "  ".join(
            cell.ljust(width) if column == 0 else cell.rjust(width)
            for column, (cell, width) in enumerate(zip(row, widths, strict=True))
        )
        for row in rows
    ]
