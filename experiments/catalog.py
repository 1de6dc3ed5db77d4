"""The experiments by name."""

from __future__ import annotations

from typing import cast

from experiments import (
    b14_reduction,
    cr18_mnist,
    l21_landmarks,
    l21_rates,
    l21_table1,
    lemmas,
    og17_bandwidth,
    og17_oversampling,
    og17_rank,
)
from experiments.grid import Experiment

EXPERIMENTS = {
    module.__name__.rpartition(".")[2]: cast(Experiment, module)
    for module in (
        cr18_mnist,
        l21_rates,
        l21_landmarks,
        l21_table1,
        og17_bandwidth,
        og17_rank,
        og17_oversampling,
        b14_reduction,
        lemmas,
    )
}
