"""Rows of Google Benchmark binaries, of Muster's parts alone."""

import json
import subprocess

import results
import tools


def add_rows(benchmark: results.Benchmark, binary: str, settings: tools.Settings) -> None:
    """A row for each case of `binary`, with the time of one item, as the binary counts them."""
    seconds = 0.02 if settings.quick else 0.2
    command = [tools.built(binary), "--benchmark_format=json", f"--benchmark_min_time={seconds}",
               f"--benchmark_repetitions={settings.pairs}"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    samples: dict[str, list[float]] = {}
    for entry in json.loads(done.stdout)["benchmarks"]:
        if entry["run_type"] == "iteration":
            samples.setdefault(entry["run_name"], []).append(1e6 / entry["items_per_second"])
    for name, figures in samples.items():
        benchmark.add(f"{binary.rsplit('/', 1)[1]}: {name}", [results.Metric("each", "us")],
                      {results.OURS: {"each": figures}})
