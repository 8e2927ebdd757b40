"""`python -m benchmarks`: measure and print.

Options: `--only`, `--sizes`, `--pages`, `--week-...`, `--json`. Figures are of this machine at
present.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Iterable, Sequence
from importlib.util import find_spec
from pathlib import Path

from rich.console import Console

from benchmarks import fit_searches as fit_searches_benchmark
from benchmarks import fits as fits_benchmark
from benchmarks import pollux as pollux_benchmark
from benchmarks import series as series_benchmark
from benchmarks import simulate as simulate_benchmark
from benchmarks.agent import cpu as agent_benchmark
from benchmarks.agent import gpu as agent_gpu_benchmark
from benchmarks.forecasting import answer_times as forecasts_benchmark
from benchmarks.forecasting import asked as forecasts_asked_benchmark
from benchmarks.forecasting import cost as forecast_cost_benchmark
from benchmarks.forecasting import week as forecast_week_benchmark
from benchmarks.rounds import live_round as live_round_benchmark
from benchmarks.rounds import quotas as quotas_benchmark
from benchmarks.rounds import round as round_benchmark
from benchmarks.rounds import shares as shares_benchmark
from benchmarks.service import bodies as bodies_benchmark
from benchmarks.service import lateness as lateness_benchmark
from benchmarks.service import lists as lists_benchmark
from benchmarks.service import load as load_benchmark
from benchmarks.service import pages as pages_benchmark
from benchmarks.service import scale as scale_benchmark
from benchmarks.service import tabs as tabs_benchmark
from benchmarks.service import usage as usage_benchmark
from benchmarks.solver import engines as engines_benchmark
from benchmarks.solver import solve as solve_benchmark
from benchmarks.table import Figures, show
from benchmarks.training import tables as training_benchmark

Benchmark = Callable[[argparse.Namespace], Iterable[Figures]]


def main(arguments: Sequence[str] | None = None) -> int:
    options = _parser().parse_args(arguments)
    console = Console(width=options.width)
    progress = Console(stderr=True)
    measured: list[Figures] = []
    for name in wanted(options.only):
        with progress.status(f"measuring: {name}"):
            for figures in BENCHMARKS[name](options):
                measured.append(figures)
                if not options.json:
                    show(figures, console)
    if options.json:
        json.dump([figures.as_json() for figures in measured], sys.stdout, indent=2)
        print()
    return 0


def wanted(only: Sequence[str] | None) -> list[str]:
    """Return what is to be measured, all by default; without PyTorch, what can be.

    Raises SystemExit (2) if what `only` names cannot be measured here.
    """
    lacking = set() if find_spec("torch") else NEED_TORCH
    if asked := lacking.intersection(only or ()):
        names = ", ".join(sorted(asked))
        _parser().error(f"--only: {names}: PyTorch is not installed. Install maat[agent].")
    if lacking and not only:
        print(f"left out, for want of PyTorch: {', '.join(sorted(lacking))}", file=sys.stderr)
    return list(only or [name for name in BENCHMARKS if name not in lacking])


def _solve(options: argparse.Namespace) -> Sequence[Figures]:
    settings = solve_benchmark.Settings(
        options.sizes, kill_after=options.kill_after, stored=options.rounds
    )
    large = solve_benchmark.Settings(options.large, jobs_per_gpu=1.2, stored=2, others=False)
    return [
        solve_benchmark.measure(settings),
        *([solve_benchmark.measure(large)] if options.large else []),
    ]


def _engines(options: argparse.Namespace) -> Sequence[Figures]:
    return [engines_benchmark.measure(rounds=options.recorded)]


def _round(options: argparse.Namespace) -> Sequence[Figures]:
    return [round_benchmark.measure(options.sizes, options.large, stored=options.rounds)]


def _live_round(options: argparse.Namespace) -> Sequence[Figures]:
    return [live_round_benchmark.measure(options.postgres, stored=options.rounds)]


def _quotas(_: argparse.Namespace) -> Sequence[Figures]:
    return [quotas_benchmark.measure_cost(), quotas_benchmark.measure_shares()]


def _shares(options: argparse.Namespace) -> Sequence[Figures]:
    return [shares_benchmark.measure(options.sizes, stored=options.rounds)]


def _simulate(_: argparse.Namespace) -> Sequence[Figures]:
    return [simulate_benchmark.measure(), simulate_benchmark.measure_pollux()]


def _series(_: argparse.Namespace) -> Sequence[Figures]:
    return [series_benchmark.measure()]


def _fits(_: argparse.Namespace) -> Sequence[Figures]:
    return [fits_benchmark.measure(), fit_searches_benchmark.measure()]


def _pollux(_: argparse.Namespace) -> Sequence[Figures]:
    return [pollux_benchmark.measure()]


def _load(options: argparse.Namespace) -> Sequence[Figures]:
    return [load_benchmark.measure(load_benchmark.Settings(options.clients, options.load_seconds))]


def _bodies(_: argparse.Namespace) -> Sequence[Figures]:
    return [bodies_benchmark.measure()]


def _pages(options: argparse.Namespace) -> Sequence[Figures]:
    return [pages_benchmark.measure(options.pages)]


def _tabs(_: argparse.Namespace) -> Sequence[Figures]:
    return [tabs_benchmark.measure()]


def _lateness(_: argparse.Namespace) -> Sequence[Figures]:
    return [lateness_benchmark.measure()]


def _lists(_: argparse.Namespace) -> Sequence[Figures]:
    return lists_benchmark.measure()


def _scale(_: argparse.Namespace) -> Sequence[Figures]:
    return scale_benchmark.measure()


def _agent(_: argparse.Namespace) -> Iterable[Figures]:
    return agent_benchmark.measure()


def _agent_gpu(_: argparse.Namespace) -> Sequence[Figures]:
    return agent_gpu_benchmark.measure()


def _training(_: argparse.Namespace) -> Sequence[Figures]:
    return training_benchmark.measure()


def _forecasts(_: argparse.Namespace) -> Sequence[Figures]:
    return [forecasts_benchmark.measure()]


def _forecast_cost(_: argparse.Namespace) -> Iterable[Figures]:
    return forecast_cost_benchmark.measure()


def _forecasts_asked(_: argparse.Namespace) -> Sequence[Figures]:
    return [forecasts_asked_benchmark.measure()]


def _forecast_week(options: argparse.Namespace) -> Iterable[Figures]:
    return forecast_week_benchmark.measure(
        forecast_week_benchmark.Weeks(
            options.week_policies,
            options.week_seeds,
            days=options.week_days,
            every_hours=options.week_every_hours,
            kept_in=options.week_kept_in,
            most_cpu_seconds=options.week_cpu_seconds,
        )
    )


def _usage(_: argparse.Namespace) -> Sequence[Figures]:
    return usage_benchmark.measure()


BENCHMARKS: dict[str, Benchmark] = {
    "solve": _solve,
    "engines": _engines,
    "round": _round,
    "live_round": _live_round,
    "quotas": _quotas,
    "shares": _shares,
    "simulate": _simulate,
    "series": _series,
    "fits": _fits,
    "pollux": _pollux,
    "pages": _pages,
    "tabs": _tabs,
    "load": _load,
    "bodies": _bodies,
    "lateness": _lateness,
    "lists": _lists,
    "scale": _scale,
    "agent": _agent,
    "agent_gpu": _agent_gpu,
    "training": _training,
    "usage": _usage,
    "forecasts": _forecasts,
    "forecast_cost": _forecast_cost,
    "forecasts_asked": _forecasts_asked,
    "forecast_week": _forecast_week,
}

NEED_TORCH = frozenset({"agent", "agent_gpu", "training"})


def _sizes(text: str) -> list[int]:
    sizes = [int(part) for part in text.split(",") if part]
    for size in sizes:
        if size <= 0 or size % 64:
            raise argparse.ArgumentTypeError(f"{size} is no multiple of 64 GPUs")
    return sizes


def _counts(text: str) -> list[int]:
    return [int(part) for part in text.split(",") if part]


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks", description="Measure Maat; every figure is of this run."
    )
    parser.add_argument(
        "--only", action="append", choices=list(BENCHMARKS), help="one benchmark; may be repeated"
    )
    parser.add_argument(
        "--sizes",
        type=_sizes,
        default=[64, 256, 1024, 2048],
        help="GPUs, multiples of 64, separated by commas",
    )
    parser.add_argument(
        "--large",
        type=_sizes,
        default=[16384],
        help="GPUs at 1.2 jobs per GPU, Maat alone; empty for none",
    )
    parser.add_argument("--rounds", type=int, default=5, help="stored rounds per size")
    parser.add_argument(
        "--recorded", type=int, default=40, help="recorded rounds per programme, for engines"
    )
    parser.add_argument(
        "--kill-after",
        type=float,
        default=20.0,
        help="wall seconds after which a solver in a child process is killed",
    )
    parser.add_argument(
        "--postgres",
        metavar="URL",
        help="an empty PostgreSQL database, to measure live rounds on as well",
    )
    parser.add_argument(
        "--clients",
        type=_counts,
        default=[10, 40, 50, 100, 200, 400],
        help="clients at once, separated by commas",
    )
    parser.add_argument(
        "--load-seconds",
        type=float,
        default=5.0,
        help="wall seconds of load on each route by each number of clients",
    )
    parser.add_argument(
        "--pages",
        type=lambda text: text.split(","),
        default=[],
        help="paths of the pages that `pages` measures, separated by commas; all without it",
    )
    _add_weeks(parser)
    parser.add_argument("--json", action="store_true", help="print JSON, not rounded")
    parser.add_argument(
        "--width", type=int, default=240, help="characters that a table may be wide"
    )
    return parser


def _add_weeks(parser: argparse.ArgumentParser) -> None:
    """Add the options of `forecast_week`."""
    usual = forecast_week_benchmark.Weeks()
    group = parser.add_argument_group("forecast_week")
    group.add_argument(
        "--week-policies",
        type=lambda text: text.split(","),
        default=usual.policies,
        help="policies, each of which plays a week, separated by commas",
    )
    group.add_argument(
        "--week-seeds", type=_counts, default=usual.seeds, help="of the jobs, separated by commas"
    )
    group.add_argument("--week-days", type=float, default=usual.days, help="days to be played")
    group.add_argument(
        "--week-every-hours", type=float, default=usual.every_hours, help="between two forecasts"
    )
    group.add_argument(
        "--week-kept-in",
        type=Path,
        metavar="FOLDER",
        help="keep a week there after every forecast; the same command goes on with it",
    )
    group.add_argument(
        "--week-cpu-seconds",
        type=float,
        default=usual.most_cpu_seconds,
        help="CPU seconds of this run after which a week's figures are those until then",
    )


if __name__ == "__main__":
    sys.exit(main())
