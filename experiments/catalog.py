"""The experiments by name."""

from __future__ import annotations

from typing import cast

from experiments import (
    b14_reduction,
    cr18_mnist,
    l21_landmarks,
    l21_rates,
    l21_search,
    l21_table1,
    lemmas,
    og17_bandwidth,
    og17_oversampling,
    og17_rank,
    timings,
    whole_fits,
)
from experiments.grid import Experiment

EXPERIMENTS = {
    module.__name__.rpartition(".")[2]: cast(Experiment, module)
    # What counts most comes first, for runs that are cut short.
    for module in (
        cr18_mnist,
        l21_table1,
        l21_search,
        l21_landmarks,
        b14_reduction,
        og17_bandwidth,
        og17_rank,
        l21_rates,
        lemmas,
        og17_oversampling,
        timings,
        whole_fits,
    )
}
