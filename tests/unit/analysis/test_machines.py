"""Each machine's own speedup is found, and intervals over machines hold what blocks do not."""

from types import SimpleNamespace

import numpy as np
import pytest

from specmoe.analysis.advice_text import describe_advice
from specmoe.analysis.intervals import interval_of_speedup
from specmoe.analysis.machines import by_machine, cells_of_machines, machine_of, machine_varies
from specmoe.analysis.summaries import summarise_cells, with_speedups
from specmoe.config.backend import Backend
from specmoe.config.schema import Hosts, Statistics

from ...planted_machines import CONFIDENCE, coverage, shared_runs
from ..paper_analyses import full
from ..shared_analyses import with_machines

TRUTH = {"aa": 1.3, "bb": 0.8}
HOST = {"machines": [{"id": "aa", "chip": "EPYC"}, {"id": "bb", "chip": "Xeon"}]}


def runs(gains=TRUTH, blocks=8, seed=1, noise=0.03):
    generator = np.random.default_rng(seed)
    return shared_runs(gains, blocks=blocks, noise=noise, generator=generator)


def machines(frame, host=HOST):
    compared = with_speedups(frame)
    cells = summarise_cells(with_speedups(by_machine(frame)), Statistics())
    return cells_of_machines(compared, cells, host, Statistics()).set_index("host")


def test_each_of_two_kinds_is_recovered_and_blocks_of_both_together_hold_neither():
    held = dict.fromkeys(TRUTH, 0)
    for seed in range(50):
        frame = runs(seed=seed)
        found = machines(frame)
        for host, truth in TRUTH.items():
            held[host] += found.loc[host, "speedup_low"] <= truth <= found.loc[host, "speedup_high"]
        low, high = interval_of_speedup(with_speedups(frame), CONFIDENCE)
        assert low > TRUTH["bb"]
        assert high < TRUTH["aa"]
        of_all = found.iloc[0]
        assert of_all["of_all_low"] < TRUTH["bb"] < TRUTH["aa"] < of_all["of_all_high"]
    assert all(44 <= count <= 50 for count in held.values())


def test_where_machines_differ_only_intervals_over_machines_hold_the_mean_of_all():
    generator = np.random.default_rng(3)
    held = coverage(4, 6, spread=0.1, noise=0.03, times=200, generator=generator)
    assert held.over_machines > 0.92
    assert held.over_blocks < 0.75


def test_the_blocks_of_a_comparison_on_a_machine_count_as_one():
    frame = by_machine(runs(blocks=3))
    assert sorted(frame["block"].unique()) == [
        f"B/moe_q4/draft_0.8b/{host}" for host in sorted(TRUTH)
    ]
    # Every run keeps a place of its own among the passes.
    assert not frame.duplicated(["block", "pass", "prompt", "draft"]).any()
    cells = summarise_cells(with_speedups(frame), Statistics())
    assert cells["blocks"].tolist() == [2]
    assert cells["speedup"].tolist() == pytest.approx([(1.3 * 0.8) ** 0.5], rel=0.05)


def test_machines_with_one_name_are_told_apart_by_their_ids():
    alike = {"machines": [{"id": name, "chip": "EPYC", "gpu": None} for name in TRUTH]}
    assert machines(runs(), alike)["machine"].tolist() == ["EPYC (aa)", "EPYC (bb)"]
    assert machines(runs())["machine"].tolist() == ["EPYC", "Xeon"]


def test_a_machine_has_the_name_of_its_gpu_only_where_that_computes():
    with_gpu = {"machines": [{"id": "aa", "chip": "EPYC", "gpu": "H200"}, HOST["machines"][1]]}
    idle = machines(runs(), with_gpu)
    assert idle["machine"].tolist() == ["EPYC", "Xeon"]
    assert idle["gpu"].dropna().tolist() == ["H200"]
    computing = machines(runs().assign(backend=Backend.CUDA), with_gpu)
    assert computing["machine"].tolist() == ["H200", "Xeon"]
    machine = {"host_chip": "EPYC", "host_gpu": "H200"}
    assert machine_of(machine | {"backend": "cuda"}) == "H200"
    assert machine_of(machine | {"backend": "cpu"}) == "EPYC"
    assert machine_of({"host_chip": "EPYC", "host_gpu": None, "backend": "vulkan"}) == "EPYC"


def test_a_campaign_of_one_machine_has_no_such_cells_and_no_machine_varies():
    alone = runs({"aa": 1.3})
    assert machines(alone).empty
    config = {hosts: SimpleNamespace(campaign=SimpleNamespace(hosts=hosts)) for hosts in Hosts}
    assert not machine_varies(alone, config[Hosts.ANY])
    assert [hosts for hosts in Hosts if machine_varies(runs(), config[hosts])] == [Hosts.ANY]


def test_the_advice_says_that_its_blocks_are_machines():
    assert "blocks and repeats below count machines" in " ".join(
        describe_advice(with_machines()).split()
    )
    assert "count machines" not in describe_advice(full())
