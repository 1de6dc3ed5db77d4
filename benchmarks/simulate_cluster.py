"""Play the passes of a fit on a cluster that is too large to have: discrete events.

Tasks of a round queue at workers; their times vary, some workers are slow, and some are
lost, so that their rows are read again by others.  Sums go up a tree, level by level.

    python -m benchmarks.simulate_cluster --workers 100 --rows 1000000000
"""

from __future__ import annotations

import argparse
import heapq
import math
from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Cluster:
    """Workers of one thread, and what may happen to them."""

    n_workers: int
    #: Standard deviation of the logarithm of a task's time.
    spread: float = 0.2
    slow_share: float = 0.02
    slow_factor: float = 2.0
    #: Chance that a worker is lost in a second.
    loss: float = 1e-5
    #: Bytes per second of storage and network, for each worker.
    reading: float = 2e8
    network: float = 1.25e8
    task_seconds: float = 1e-3
    tasks_per_worker: int = 2
    fan_in: int = 8


def play_round(
    cluster: Cluster,
    work: float,
    row_bytes: float,
    sum_bytes: float,
    rng: np.random.Generator,
) -> tuple[float, int]:
    """Return the seconds of a pass, and how many workers were lost in it.

    `work` are the seconds of a worker of usual speed.
    """
    n, each = cluster.n_workers, cluster.tasks_per_worker
    speed = np.where(rng.random(n) < cluster.slow_share, cluster.slow_factor, 1.0)
    factors = np.exp(cluster.spread * rng.standard_normal((n, each)))
    times = work / each * speed[:, None] * factors
    lost_at = rng.exponential(1.0 / cluster.loss, n)
    # The scheduler hands out one task after the other.
    free = [(cluster.task_seconds * i, i) for i in range(n)]
    heapq.heapify(free)
    own = {i: list(times[i]) for i in range(n)}
    ends, orphans, n_lost = [], 0, 0
    while free:
        now, worker = heapq.heappop(free)
        if not own[worker]:
            continue
        end = now + own[worker].pop(0)
        if end > lost_at[worker]:
            orphans += 1 + len(own[worker])
            own[worker] = []
            n_lost += 1
            continue
        ends.append(end)
        heapq.heappush(free, (end, worker))
    # Others read the rows of lost workers again, side by side, after their own.
    if orphans:
        again = work / each + row_bytes / each / cluster.reading
        last = max(ends, default=0.0)
        ends += [last + again * (1 + i // n) for i in range(orphans)]
    depth = math.ceil(math.log(n * each) / math.log(cluster.fan_in))
    up = depth * (cluster.fan_in * sum_bytes / cluster.network + cluster.task_seconds)
    return max(ends) + up, n_lost


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=float, default=1e9)
    parser.add_argument("--features", type=int, default=100)
    parser.add_argument("--clusters", type=int, default=20)
    parser.add_argument("--landmarks", type=int, default=1000)
    parser.add_argument("--workers", type=int, default=100)
    parser.add_argument("--seconds", type=float, default=79.0, help="Of all passes.")
    parser.add_argument("--passes", type=int, default=4)
    parser.add_argument("--loss", type=float, default=1e-5)
    parser.add_argument("--other-seconds", type=float, default=35.0)
    parser.add_argument("--price", type=float, default=0.10, help="Worker and hour.")
    parser.add_argument("--seeds", type=int, default=200)
    options = parser.parse_args()
    cluster = Cluster(options.workers, loss=options.loss)
    row_bytes = options.rows / options.workers * options.features * 4
    sum_bytes = options.clusters * options.landmarks * 8
    totals, lost = [], 0
    for seed in range(options.seeds):
        rng = np.random.default_rng(seed)
        total = 0.0
        for _ in range(options.passes):
            work = options.seconds / options.passes
            seconds, n_lost = play_round(cluster, work, row_bytes, sum_bytes, rng)
            total += seconds
            lost += n_lost
        totals.append(total)
    low, middle, high = np.quantile(totals, [0.05, 0.5, 0.95])
    print(f"passes: ideal {options.seconds:.0f} s, simulated {middle:.0f} s")
    print(
        f"5% to 95%: {low:.0f} to {high:.0f} s; {lost / options.seeds:.2f} workers lost"
    )
    low, middle, high = (
        (seconds + options.other_seconds) * options.workers / 3600
        for seconds in (low, middle, high)
    )
    print(
        f"whole fit: {middle:.1f} worker-hours ({low:.1f} to {high:.1f}), "
        f"{middle * options.price:.2f} at {options.price:.2f} for a worker and hour"
    )


if __name__ == "__main__":
    main()
