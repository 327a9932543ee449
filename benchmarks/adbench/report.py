"""The tables, the plot and the ratios of a run: rows in, text out.

A row is a dict: workload, case, system, threads; `objective`, `gradient`, `into` in seconds, `compile` in seconds, `peak`
in bytes, `error` (None: unknown), or `failed`, why there is nothing.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable
from typing import Any

from .. import common
from .cases import WORKLOADS, tolerance

Rows = list[dict[str, Any]]
OURS = "myia_relay"
WITHOUT = "without "
PLAIN_PEERS = ("jax", "torch", "torch.compile")
LIMITS = {"gmm": 1.5, "ba": 1.5, "hand": 2.0, "lstm": 2.0, "trmv": 1.3, "mlp": 1.25}
"""What is wanted as a multiple of the reference's time (for the perceptron, of its products alone), one thread."""
MEBIBYTE = 2**20
MARKS = {OURS: "o", "jax": "J", "torch": "T", "torch.compile": "C", "torch rows": "R"}


def case_lines(rows: Rows) -> str:
    """The rows of one case, a line each."""
    lines = []
    for row in rows:
        where = f"{row['workload']:<5}{row['case']:<38}{row['system']:<14}"
        if "failed" in row:
            lines.append(f"{where}failed: {row['failed'].strip()}")
            continue
        figures = [f"{name} {1e3 * row[key]:10.4f} ms" for name, key in _FIGURES if key in row]
        error = row.get("error")
        checked = "" if error is None else f"error {error:.1e}{'' if right(row) else ' WRONG'}"
        compiled = f"compile {row['compile']:5.2f} s" if "compile" in row else ""
        lines.append("  ".join([where, *figures, compiled, checked, row.get("note", "")]).rstrip())
    return "\n".join(lines)


_FIGURES = (("f", "objective"), ("df", "gradient"), ("into", "into"))


def right(row: dict[str, Any]) -> bool:
    """Whether the output is right, as far as that is known."""
    return row.get("error") is None or row["error"] <= tolerance(row["workload"])


def failures(rows: Rows) -> int:
    """How many cases of ours are wrong or missing."""
    return sum("failed" in row or not right(row) for row in rows if row["system"] == OURS)


def show(rows: Rows, scaling: Rows, check: bool) -> None:
    """Print everything that follows the single cases."""
    accuracy(rows)
    if check:
        return
    for threads in sorted({row["threads"] for row in rows}):
        mine = [row for row in rows if row["threads"] == threads and "failed" not in row]
        print(f"\n== {threads} thread{'s' * (threads > 1)} ==\n")
        print(main_table(mine))
        print(f"\n{plot(mine)}")
        print(f"\n{ratios(mine)}")
        if any(row["system"].startswith(WITHOUT) for row in mine):
            print(f"\n{ablation_table(mine)}")
    if any("peak" in row for row in rows):
        print(f"\n{memory_table(rows)}")
    print(f"\n{compile_line(rows)}")
    if scaling:
        print(f"\n{scaling_table(scaling)}")


def accuracy(rows: Rows) -> None:
    """Print whether the outputs are right, by system."""
    for system in dict.fromkeys(row["system"] for row in rows):
        mine = [row for row in rows if row["system"] == system]
        known = [row for row in mine if row.get("error") is not None]
        wrong = [row for row in known if not right(row)]
        missing = [row for row in mine if "failed" in row]
        double = [row["error"] for row in known if row["workload"] != "mlp"]
        line = f"{system}: {len(known) - len(wrong)} of {len(known)} outputs right"
        line += f", the worst error {max(double):.1e}" if double else ""
        for title, some in (("WRONG", wrong), ("failed", missing)):
            if some:
                line += f"; {title}: " + ", ".join(f"{row['workload']}/{row['case']}" for row in some)
        print(line)


def ablation_table(rows: Rows) -> str:
    """What each optimisation is worth: time of the derivative without it over the time with it, geometric mean by workload."""
    systems = list(dict.fromkeys(row["system"] for row in rows if row["system"].startswith(WITHOUT)))
    workloads = list(dict.fromkeys(row["workload"] for row in rows))
    lines = [["times slower", *workloads]]
    for system in systems:
        cells = [system]
        for workload in workloads:
            pairs = [
                (s[system], s[OURS])
                for (w, _), s in by_case(rows).items()
                if w == workload and {system, OURS} <= s.keys()
            ]
            factors = [best_time(without) / best_time(ours) for without, ours in pairs]
            cells.append(f"{statistics.geometric_mean(factors):.2f}" if factors else "-")
        lines.append(cells)
    return common.table(lines)


def by_case(rows: Rows) -> dict[tuple[str, str], dict[str, dict[str, Any]]]:
    """(workload, case) -> system -> row."""
    grouped: dict[tuple[str, str], dict[str, dict[str, Any]]] = {}
    for row in rows:
        grouped.setdefault((row["workload"], row["case"]), {})[row["system"]] = row
    return grouped


def best_time(row: dict[str, Any]) -> float:
    """Seconds of the derivative: into arrays that exist where a system can."""
    return row.get("into", row.get("gradient", math.nan))


def reference(systems: dict[str, dict[str, Any]]) -> dict[str, Any] | None:
    """The near-limit reference's row, or that of the products alone."""
    return systems.get("limit") or systems.get("sgemm")


def main_table(rows: Rows) -> str:
    """Milliseconds of the derivative by system, and ratios."""
    peers = [name for name in (*PLAIN_PEERS, "torch rows") if any(row["system"] == name for row in rows)]
    head = ["ms", "", "f", "df fresh", "df into", "limit", "x limit", *peers, *(f"/ {name}" for name in peers)]
    lines: list[list[str]] = [head]
    for (workload, case), systems in by_case(rows).items():
        ours, lowest = systems.get(OURS), reference(systems)
        cells = [f"{workload}/{case}", ""]
        cells += [_ms(ours, "objective"), _ms(ours, "gradient"), _ms(ours, "into"), _ms(lowest, "gradient")]
        cells.append(f"{best_time(ours) / lowest['gradient']:.2f}" if ours and lowest else "")
        cells += [_ms(systems.get(name), "gradient") for name in peers]
        for name in peers:
            cells.append(f"{systems[name]['gradient'] / ours['gradient']:.1f}" if ours and name in systems else "")
        lines.append(cells)
    return common.table([[row[0], *row[2:]] for row in lines])


def _ms(row: dict[str, Any] | None, key: str) -> str:
    return f"{1e3 * row[key]:,.3f}" if row and key in row else ""


def plot(rows: Rows, width: int = 72) -> str:
    """Every case as a line on a logarithmic axis: the reference at |, ours at o, the peers at their letters."""
    grouped = {key: systems for key, systems in by_case(rows).items() if reference(systems) or OURS in systems}
    points: dict[tuple[str, str], dict[str, float]] = {}
    for key, systems in grouped.items():
        base = reference(systems) or systems[OURS]
        points[key] = {MARKS[n]: best_time(r) / base["gradient"] for n, r in systems.items() if n in MARKS}
    values = [value for marks in points.values() for value in marks.values() if value > 0]
    if not values:
        return ""
    low, high = min(1.0, *values), max(1.0, *values)
    step = max(math.log(high / low), 1e-9) / (width - 1)

    def place(value: float) -> int:
        return min(width - 1, max(0, round(math.log(value / low) / step)))

    lines = []
    for (workload, case), marks in points.items():
        line = [" "] * width
        line[place(1.0)] = "|"
        for mark, value in sorted(marks.items(), key=lambda item: item[0] == "o"):  # ours on top
            line[place(value)] = mark
        lines.append(f"{workload + '/' + case:<44}{''.join(line).rstrip()}")
    shown = ", ".join(f"{MARKS[name]} {name}" for name in MARKS if any(name in s for s in grouped.values()))
    return "\n".join(
        [*lines, f"{'':<44}time from {low:.2g} to {high:.3g} times the reference's (|), logarithmic; {shown}"]
    )


def geometric_mean(values: Iterable[float]) -> float:
    """Of positive numbers; NaN for none."""
    values = list(values)
    return math.exp(statistics.fmean(map(math.log, values))) if values else math.nan


def ratios(rows: Rows) -> str:
    """By workload and over all of them, each weighing the same: over the reference, over the peers, over ADBench's style."""
    grouped = by_case(rows)
    head = ["ratios", "x limit", "worst", "wanted", "best peer / ours", "least", "fresh", "row by row / ours"]
    lines = [head]
    over: dict[str, list[float]] = {"limit": [], "peer": [], "fresh": [], "rows": []}
    for workload in WORKLOADS:
        mine = [s for (name, _), s in grouped.items() if name == workload and OURS in s and "gradient" in s[OURS]]
        if not mine:
            continue
        multiples = [best_time(s[OURS]) / r["gradient"] for s in mine if (r := reference(s)) and "gradient" in r]
        ahead, fresh, rowwise = [], [], []
        for systems in mine:
            times = [systems[name]["gradient"] for name in PLAIN_PEERS if "gradient" in systems.get(name, {})]
            if times:
                ahead.append(min(times) / best_time(systems[OURS]))
                fresh.append(min(times) / systems[OURS]["gradient"])
            style = systems.get("torch rows") or systems.get("torch")
            if style and "gradient" in style:
                rowwise.append(style["gradient"] / systems[OURS]["gradient"])
        for name, values in zip(over, (multiples, ahead, fresh, rowwise), strict=True):
            if values:
                over[name].append(geometric_mean(values))
        cells = [
            workload,
            _number(geometric_mean(multiples)),
            _number(max(multiples, default=math.nan)),
            f"{LIMITS[workload]}",
        ]
        cells += [_number(geometric_mean(ahead)), _number(min(ahead, default=math.nan))]
        lines.append([*cells, _number(geometric_mean(fresh)), _number(geometric_mean(rowwise))])
    total = {name: _number(geometric_mean(values)) for name, values in over.items()}
    lines.append(["geometric mean", total["limit"], "", "", total["peer"], "", total["fresh"], total["rows"]])
    lines.append(["wanted", "", "", "", "4", "1", "", "34.6"])
    note = "x limit: our time into existing arrays over the reference's (mlp: over its products alone), geometric mean and worst\n"
    note += (
        "peer / ours: the quicker of JAX and PyTorch over ours (into; fresh: new results), geometric mean and least;\n"
    )
    note += "row by row: PyTorch as ADBench uses it, over ours with new results"
    return common.table(lines) + "\n" + note


def _number(value: float) -> str:
    return "" if math.isnan(value) else f"{value:.2f}" if value < 100 else f"{value:,.0f}"


def memory_table(rows: Rows) -> str:
    """Peak memory above inputs and outputs, and ratios in which each counts as at least 1 MiB."""
    lines = [["peak MiB", OURS, "jax", "torch"]]
    shares: dict[str, dict[str, list[float]]] = {"jax": {}, "torch": {}}
    limit: dict[str, list[float]] = {}  # what PyTorch needs, and nobody less than 1 MiB
    above = []
    for (workload, case), systems in by_case([row for row in rows if "peak" in row]).items():
        lines.append([f"{workload}/{case}", *(_mib(systems.get(name)) for name in (OURS, "jax", "torch"))])
        if OURS not in systems:
            continue
        ours = max(MEBIBYTE, systems[OURS]["peak"])
        for name in set(shares) & set(systems):
            theirs = max(MEBIBYTE, systems[name]["peak"])
            shares[name].setdefault(workload, []).append(theirs / ours)
            if name == "torch":
                limit.setdefault(workload, []).append(theirs / MEBIBYTE)
            if name == "jax" and theirs < ours:
                above.append(f"{workload}/{case}")
    means = {name: geometric_mean(map(geometric_mean, workloads.values())) for name, workloads in shares.items()}
    line = ", ".join(f"{_number(mean)} x less than {name}" for name, mean in means.items() if not math.isnan(mean))
    more = f"; more than jax: {', '.join(above)}" if above else "; never more than jax" if shares["jax"] else ""
    most = geometric_mean(map(geometric_mean, limit.values()))
    more += f"; a program that needs nothing would have {_number(most)} x less than torch" if limit else ""
    what = "above inputs and outputs, each at least 1 MiB, geometric mean"
    return f"{common.table(lines)}\n{what}: {line}{more}  (wanted: 30 x less than torch, never more than jax)"


def _mib(row: dict[str, Any] | None) -> str:
    return f"{row['peak'] / MEBIBYTE:,.1f}" if row else ""


def compile_line(rows: Rows) -> str:
    """The longest compile time of each system."""
    parts = []
    for system in dict.fromkeys(row["system"] for row in rows):
        mine = [row for row in rows if row["system"] == system and "compile" in row]
        if mine and system != "sgemm":
            most = max(mine, key=lambda row: row["compile"])
            middle = statistics.median(row["compile"] for row in mine)
            parts.append(f"{system} {middle:.2f} (longest {most['compile']:.2f}, {most['workload']}/{most['case']})")
    return "compile seconds of a derivative, median: " + "; ".join(parts) + "  (wanted: under 2)"


def scaling_table(rows: Rows) -> str:
    """Nanoseconds for each element, and those of the reference; the most over the least of a workload."""
    lines = [["ns for each element", "elements", OURS, "limit"]]
    spans = []
    for workload in dict.fromkeys(row["workload"] for row in rows):
        costs: dict[str, list[float]] = {"seconds": [], "limit": []}
        for row in (row for row in rows if row["workload"] == workload):
            if "failed" in row:
                cells = ["", f"failed: {row['failed'].strip().splitlines()[-1]}", ""]
            else:
                figures = {system: 1e9 * row[system] / row["elements"] for system in costs if system in row}
                for system, figure in figures.items():
                    costs[system].append(figure)
                cells = [f"{row['elements']:,}", *(f"{figures[s]:,.3f}" if s in figures else "" for s in costs)]
            lines.append([f"{workload}/{row['case']}", *cells])
        ours, limits = (f"{max(values) / min(values):.2f}" if values else "" for values in costs.values())
        if ours:
            spans.append(f"{workload} {ours}" + (f" (limit {limits})" if limits else ""))
    return f"{common.table(lines)}\nmost over least: {', '.join(spans)}  (wanted: 1.5 or less); one thread"
