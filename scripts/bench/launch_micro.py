"""Google Benchmark's programs, as rows of a report."""

import json
import subprocess

import results
import tools


def add_rows(benchmark: results.Benchmark, target: str, settings: tools.Settings) -> None:
    """A row for each benchmark of the program: the time of one iteration, and its rate of bytes if it tells one."""
    command = [tools.built(target), "--benchmark_format=json", f"--benchmark_repetitions={settings.pairs}",
               f"--benchmark_min_time={0.05 if settings.quick else 0.3}"]
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, check=True)
    times: dict[str, list[float]] = {}
    rates: dict[str, list[float]] = {}
    units: dict[str, str] = {}
    for entry in json.loads(done.stdout)["benchmarks"]:
        if entry["run_type"] != "iteration":
            continue
        name = entry["run_name"]
        if entry.get("error_occurred"):
            raise RuntimeError(f"{target}: {name}: {entry['error_message']}")
        times.setdefault(name, []).append(entry["real_time"])
        units[name] = entry["time_unit"]
        if "bytes_per_second" in entry:
            rates.setdefault(name, []).append(entry["bytes_per_second"] / 2**20)
    program = target.rsplit("/", 1)[-1]
    for name, figures in times.items():
        one = results.Metric("one", units[name])
        rate = results.Metric("rate", "MiB/s", higher_is_better=True)
        samples = {one.name: figures, **({rate.name: rates[name]} if name in rates else {})}
        benchmark.add(f"{program}: {name}", [one, rate], {results.OURS: samples})
