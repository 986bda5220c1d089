"""The atlas in a real browser."""

import pytest

from .conftest import READERS


@pytest.mark.parametrize(("size", "locale", "light"), READERS)
def test_it_has_no_serious_fault_of_access_and_requests_nothing(
    visit, atlas_page, size, locale, light
):
    visited = visit(atlas_page, size, locale, light)
    heading = visited.page.get_by_role("heading", level=1).inner_text()
    assert "35B-A3B" in heading and ("倍" in heading) == (locale == "zh-CN")
    visited.assert_sound()


@pytest.mark.parametrize("place", [1, 4, 6], ids=["speedup", "machine", "date"])
def test_it_is_sorted_by_what_a_reader_asks(visit, atlas_page, place):
    page = visit(atlas_page).page
    rows, head = "#first tbody tr", page.locator("#first thead th").nth(place)
    cell = f"row.cells[{place}]"
    keys = f"rows => rows.map(row => {cell}.dataset.key ?? {cell}.innerText)"
    rendered = page.locator(rows).evaluate_all(keys)
    head.get_by_role("button").click()
    shown = page.locator(rows).evaluate_all(keys)
    assert sorted(shown) == sorted(rendered)
    known = [key for key in shown if key != "–"]
    assert shown[len(known) :] == ["–"] * (len(shown) - len(known))
    words = "all[i - 1].localeCompare(one, 'en', {numeric: true})"
    compared = "all[i - 1] - one" if place == 1 else words
    assert page.evaluate(f"known => known.every((one, i, all) => !i || {compared} <= 0)", known)
