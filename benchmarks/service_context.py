"""How long a decision with a context takes among stored arms: ``python -m benchmarks.service_context``."""

import argparse
from time import perf_counter

import numpy as np

from benchmarks.service_process import Server
from sketchbandit_service.client import Client

_CHUNK = 1000  # arms of one request


def main(arguments: list[str] | None = None) -> None:
    """Store arms, decide with a context each time, print the quantiles."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--arms", type=int, default=50_000)
    parser.add_argument("--dim", type=int, default=768)
    parser.add_argument("--decisions", type=int, default=100)
    options = parser.parse_args(arguments)
    random = np.random.default_rng(0)
    with Server() as server, Client(server.url, timeout=60.0) as client:
        settings = {"policy": "soful", "parameters": {"size": 50, "scaling": "rows"}}
        shop = client.create("shop", options.dim, **settings)
        for start in range(0, options.arms, _CHUNK):
            count = min(_CHUNK, options.arms - start)
            arms = random.standard_normal((count, options.dim)).round(3)
            shop.put_arms({f"p{start + place}": row.tolist() for place, row in enumerate(arms)})
        seconds = []
        for _ in range(options.decisions):
            context = random.standard_normal(options.dim)
            began = perf_counter()
            decision = shop.select(context=context)
            seconds.append(perf_counter() - began)
            shop.update(decision, float(random.random()))
        half, most = np.quantile(seconds, [0.5, 0.99]) * 1e3
        resident = server.resident_bytes >> 20
    print(
        f"{options.arms:,} stored arms of {options.dim} features and a context: "
        f"p50 {half:.1f} ms, p99 {most:.1f} ms; {resident:,} MiB resident"
    )


if __name__ == "__main__":
    main()
