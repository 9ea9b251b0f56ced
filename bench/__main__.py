"""`python -m bench`: measures, prints the table, writes var/bench.json. The exit code is 1 after a wrong answer."""

import argparse
import importlib.util
import json
import signal
import sys
from collections import defaultdict
from statistics import median
from types import FrameType

from bench import peer, product, report
from bench.measure import Measured, Options, measure
from bench.processes import PROJECT, BenchError
from volcanic.processes import embedded

RESULT = PROJECT / "var" / "bench.json"
# Packages of the developer's requirements, which the peer's database store needs.
_NEEDED = ("sqlalchemy", "asyncpg", "greenlet")


def main() -> int:
    """Returns the exit code."""
    arguments = _parse()
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, _interrupt)
    missing = [name for name in _NEEDED if importlib.util.find_spec(name) is None]
    if missing:
        sys.stderr.write(f"not installed: {', '.join(missing)}. Install requirements-dev.txt.\n")
        return 1
    product.prepare_environment()
    try:
        results = _run(arguments)
    except BenchError as error:
        sys.stderr.write(f"bench: {error}\n")
        return 1
    except KeyboardInterrupt:
        sys.stderr.write("bench: interrupted\n")
        return 130
    flat = report.flatten(results)
    RESULT.parent.mkdir(parents=True, exist_ok=True)
    RESULT.write_text(json.dumps(flat, indent=2) + "\n")
    print("\n" + report.table(flat) + f"\nwritten to {RESULT.relative_to(PROJECT)}")
    return 0


def _parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench", description="Measures the product beside the A2A SDK.")
    parser.add_argument("--seconds", type=float, default=8.0, help="how long each measure lasts (8)")
    parser.add_argument("--connections", type=int, default=16, help="number of parallel connections (16)")
    parser.add_argument("--rounds", type=int, default=1, help="number of rounds; medians are shown (1)")
    parser.add_argument("--quick", action="store_true", help="2 seconds for each measure: a test, not a benchmark")
    parser.add_argument("--worker-threads", type=int, help="instead of WORKER_THREADS")
    parser.add_argument("--only", default="", help="a comma list of uvicorn, daphne, sdk_database, sdk_memory")
    parser.add_argument(
        "--measures", default="", help="a comma list of send, immediate, get, stream, list, notify, push"
    )
    return parser.parse_args()


def _interrupt(_number: int, _frame: FrameType | None) -> None:
    raise KeyboardInterrupt


def _run(arguments: argparse.Namespace) -> dict[str, float]:
    """Runs all rounds. Returns the median of each value, by its flat name."""
    options = Options(
        seconds=2.0 if arguments.quick else arguments.seconds,
        warm_up=1.0 if arguments.quick else 2.0,
        connections=arguments.connections,
        measures=tuple(name for name in arguments.measures.split(",") if name),
    )
    wanted = [name for name in arguments.only.split(",") if name] or list(report.SERVERS)
    values: defaultdict[str, list[float]] = defaultdict(list)
    with product.services() as urls:
        keys = product.prepare_database()
        peer.make_database(urls.database_url)
        for _ in range(arguments.rounds):
            for server in wanted:
                for name, value in _measure_server(server, urls, keys, options, arguments.worker_threads).items():
                    values[f"{server}_{name}"].append(value)
    return {name: median(found) for name, found in values.items()}


_filled: set[str] = set()


def _measure_server(
    server: str, urls: embedded.Urls, keys: product.Keys, options: Options, threads: int | None
) -> Measured:
    """Starts one server, measures it, and ends it. No other measured program runs at the same time."""
    if server in ("uvicorn", "daphne"):
        with product.workers(threads) as workers, product.web(server) as (web, port):
            found = measure(server, port, {"web": web, **workers}, keys, options)
            product.check_all_done()
        if complaints := product.complaints():
            raise BenchError("\n".join(["the product logged errors:", *complaints[:10]]))
        return found
    database = urls.database_url if server == "sdk_database" else None
    with peer.peer(database_url=database) as (web, port):

        def fill() -> None:
            if database and server not in _filled:
                _filled.add(server)
                peer.fill_database(database)

        ours = ("notify", "push")
        without = ours if database else (*ours, "list")  # memory keeps no list
        return measure(server, port, {"web": web}, keys, options, prepare=fill, without=without)


if __name__ == "__main__":
    sys.exit(main())
