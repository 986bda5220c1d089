"""The page in a real browser: what a reader does with the shipped demo."""

import pytest

from specmoe.figures.figures import save_figures
from specmoe.page.page import pictures

from ..unit.page.test_page import HOSTILE, of_campaign, ones_own, page_of
from ..unit.paper_analyses import advised, full, relabelled
from .conftest import READERS

WIDTHS = ["phone", "desk"]
LANGUAGES = {"en-GB": "en", "zh-CN": "zh-CN"}


def written(folder, analysis):
    """Write the page of an analysis, with its pictures; return its file."""
    save_figures(analysis, folder)
    path = folder / "index.html"
    path.write_text(page_of(analysis, dict(pictures(folder))), encoding="utf-8")
    return path


def language(page):
    return page.evaluate("document.documentElement.lang")


def column(page, table, place):
    """Return the cells of a table's column as they are shown."""
    return page.locator(f"#table-{table} tbody tr").evaluate_all(
        f"rows => rows.map(row => row.cells[{place}].innerText.trim())"
    )


@pytest.mark.parametrize(("size", "locale", "light"), READERS)
def test_the_page_has_no_serious_fault_of_access_and_requests_nothing(
    visit, demo_page, size, locale, light
):
    visited = visit(demo_page, size, locale, light)
    assert language(visited.page) == LANGUAGES[locale]
    visited.assert_sound()


def test_the_switch_changes_the_language_and_the_page_remembers(visit, demo_page):
    page = visit(demo_page).page
    switch = page.get_by_role("button", name="中文")
    assert page.get_by_role("heading", level=1).inner_text().startswith("With 8 experts")
    switch.click()
    assert language(page) == "zh-CN"
    assert page.get_by_role("heading", level=1).inner_text().startswith("有 8 个专家")
    assert page.title().startswith("有 8 个专家")
    assert page.locator("#figure-upcycled_pairs img").get_attribute("alt").startswith("折线图")
    page.reload()
    assert language(page) == "zh-CN"
    page.get_by_role("button", name="English").press("Enter")
    assert language(page) == "en"
    page.reload()
    assert language(page) == "en"


def test_without_a_script_the_page_is_whole_and_english(visit, demo_page):
    page = visit(demo_page, java_script_enabled=False).page
    assert page.locator("#table-speculation tbody tr").count() > 0
    assert page.locator("#language").is_hidden()
    assert page.get_by_role("heading", name="Answers").is_visible()


def unfolded(page):
    page.evaluate("for (const each of document.querySelectorAll('details')) each.open = true")
    return page


def words_of(page):
    return len(page.locator("body").inner_text().split())


def test_the_page_is_read_in_three_minutes(visit, demo_page):
    page = visit(demo_page).page
    assert words_of(page) <= 700
    assert words_of(unfolded(page)) <= 2000


def test_a_table_is_sorted_by_numbers_and_goes_back(visit, demo_page):
    page = unfolded(visit(demo_page).page)
    head = page.locator("#table-speculation thead th").nth(4)
    assert head.inner_text().startswith("Speedup")
    rendered = column(page, "speculation", 4)
    values = sorted((float(text.split()[0]) for text in rendered), reverse=True)
    head.get_by_role("button").click()
    assert head.get_attribute("aria-sort") == "ascending"
    assert [float(text.split()[0]) for text in column(page, "speculation", 4)] == values[::-1]
    head.get_by_role("button").press("Enter")
    assert head.get_attribute("aria-sort") == "descending"
    assert [float(text.split()[0]) for text in column(page, "speculation", 4)] == values
    head.get_by_role("button").press("Space")
    assert head.get_attribute("aria-sort") == "none"
    assert column(page, "speculation", 4) == rendered
    # Words are sorted too, and dashes come last.
    heads = page.locator("#table-models thead th")
    heads.nth(0).get_by_role("button").click()
    labels = column(page, "models", 0)
    assert labels == sorted(labels, key=str.casefold)
    for order in ("ascending", "descending"):
        heads.nth(3).get_by_role("button").click()
        assert heads.nth(3).get_attribute("aria-sort") == order
        assert column(page, "models", 3)[-1] == "–"
        assert column(page, "models", 3)[0] != "–"


@pytest.mark.parametrize("size", WIDTHS)
def test_the_letters_of_a_figure_are_as_large_on_a_phone_as_on_a_desk(visit, demo_page, size):
    image = visit(demo_page, size).page.locator("#figure-upcycled_pairs img")
    assert image.bounding_box()["width"] > 0.9 * 756


def test_hostile_names_do_nothing_and_do_not_widen_the_page(visit, tmp_path):
    named = relabelled(full(), "moe_q4", HOSTILE)
    named = of_campaign(named, campaign=HOSTILE, machine_chip=HOSTILE * 3)
    visited = visit(written(tmp_path, named), "phone")
    page = visited.page
    assert page.get_by_text(HOSTILE).count() > 1
    assert HOSTILE in page.title()
    unfolded(page)
    assert page.locator("script").count() == 1
    page.locator("#language").click()
    assert HOSTILE in page.title()
    visited.assert_sound()


@pytest.mark.parametrize("size", WIDTHS)
def test_the_answer_for_ones_own_models_is_on_the_first_screen(visit, tmp_path, size):
    visited = visit(written(tmp_path, advised(ones_own(full()))), size)
    page = visited.page
    for words in ("switch on", "γ = 8", "1.40"):
        box = page.locator(".answers").get_by_text(words).first.bounding_box()
        assert box["y"] + box["height"] < page.viewport_size["height"], words
    visited.assert_sound()
