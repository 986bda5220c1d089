"""Fillers and the ramp of a load, by hand; loads on a server are in `tests/engine/test_load.py`."""

from types import SimpleNamespace

from specmoe.measure.load import _Load

from ...blocks import compared


def test_the_tokens_of_fillers_count_as_far_as_they_came_while_it_measured():
    before, begun, within, after = (0, 2, 9, 5), (1, 8, 12, 8), (0, 11, 13, 4), (1, 14, 18, 8)
    load = _Load(SimpleNamespace(), (), began=10, fillers=[before, begun, within, after])
    assert load.filled(end=15) == 0 + 4 + 4 + 2


def test_the_ramp_ends_with_the_first_filler_of_the_last_client():
    load = _Load(SimpleNamespace(block=compared(concurrency=3)), ())
    for slot, steady in ((0, False), (2, False), (0, False), (1, True), (1, True)):
        load.fillers.append((slot, 0, 1, 8))
        assert load.steady == steady
