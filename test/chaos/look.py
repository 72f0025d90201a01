"""Asks a daemon over HTTP, from its own host: prints the jobs of its event stream's first event, and its metrics."""

import json
import sys
import urllib.request


def main(port: str, token: str) -> None:
    def ask(path: str):
        asked = urllib.request.Request(f"http://127.0.0.1:{port}{path}", headers={"Authorization": f"Bearer {token}"})
        return urllib.request.urlopen(asked, timeout=10)

    with ask("/api/v1/events") as events:
        first = next(line for line in events if line.startswith(b"data: "))
    with ask("/metrics") as metrics:
        text = metrics.read().decode()
    print(json.dumps({"jobs": json.loads(first[len("data: "):]), "metrics": text}))


if __name__ == "__main__":
    main(*sys.argv[1:])
