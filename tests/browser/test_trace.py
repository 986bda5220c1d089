"""The stepper in a real browser: by pointer and keys, playing, printed, without its script."""

import pytest

from specmoe.page.page import environment, pair
from specmoe.page.trace import trace_context

from ..unit.made_recording import recording
from .conftest import serious_faults

STEPS = 14
PAGE = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>Trace</title>
<meta name="viewport" content="width=device-width"><meta name="color-scheme" content="light dark">
<style>
:root { color-scheme: light dark; }
body { background: Canvas; color: CanvasText; }
html[lang="en"] .t[lang="zh-CN"], html[lang="zh-CN"] .t[lang="en"] { display: none; }
{% include "trace.css" %}
</style><script>{% include "trace.js" %}</script></head><body><main><h1>Trace</h1>
{% include "trace.html.j2" %}
</main></body></html>
"""


@pytest.fixture
def stepper(root, tmp_path):
    """A page of nothing but the stepper."""
    template = environment(root / "paper/site").from_string(PAGE)
    path = tmp_path / "trace.html"
    path.write_text(template.render(trace=trace_context(recording()), pair=pair), encoding="utf-8")
    return path


@pytest.fixture
def page(visit, stepper):
    return visit(stepper).page


def shown(page, what: str) -> int:
    """Return how many elements of a class are to be seen."""
    return page.locator(f".trace-{what}:visible").count()


def place(page) -> str:
    return page.locator("[data-step]").inner_text()


def test_the_buttons_go_through_all_steps_and_no_further(page):
    assert (place(page), shown(page, "round"), shown(page, "part"), shown(page, "word")) == (
        ("1", 1, 1, 1)
    )
    seen = []
    for _ in range(STEPS + 2):
        # Forced, as it is clicked on when it is disabled too.
        page.get_by_role("button", name="Next").click(force=True)
        seen.append((int(place(page)), shown(page, "round"), shown(page, "part")))
    parts = [2, 1, 2, 3, 1, 2, 1, 2, 3, 4, 1, 2, 1]
    assert seen == [
        *((step, 1, part) for step, part in enumerate(parts, start=2)),
        *[(STEPS, 1, 1)] * 3,
    ]
    assert shown(page, "word") == 17
    assert page.get_by_role("button", name="Next").get_attribute("aria-disabled") == "true"
    page.get_by_role("button", name="Previous").click()
    assert (place(page), shown(page, "word")) == (str(STEPS - 1), 16)


def test_the_text_grows_when_a_round_is_decided(page):
    seen = []
    for _ in range(5):
        seen.append(shown(page, "word"))
        page.get_by_role("button", name="Next").click()
    assert seen == [1, 6, 6, 6, 10]


def test_keys_do_what_the_buttons_do_and_buttons_answer_to_keys(page):
    page.keyboard.press("Tab")
    for key, expected in [
        *(("ArrowRight", "2"), ("ArrowRight", "3"), ("ArrowLeft", "2")),
        *(("End", str(STEPS)), ("ArrowRight", str(STEPS)), ("Home", "1"), ("ArrowLeft", "1")),
    ]:
        page.keyboard.press(key)
        assert place(page) == expected
    page.get_by_role("button", name="Next").focus()
    page.keyboard.press("Enter")
    page.keyboard.press("Space")
    assert place(page) == "3"


def test_it_plays_until_it_is_stopped_and_again_from_the_start_at_its_end(page):
    page.clock.install()
    page.reload()
    page.get_by_role("button", name="Play").click()
    assert page.locator(".trace-rounds").get_attribute("aria-live") == "off"
    page.clock.run_for(3 * 1600)
    assert place(page) == "4"
    page.get_by_role("button", name="Pause").click()
    page.clock.run_for(5 * 1600)
    assert place(page) == "4"
    page.get_by_role("button", name="Play").click()
    page.clock.run_for(STEPS * 1600)
    assert place(page) == str(STEPS)
    page.get_by_role("button", name="Play").click()
    assert place(page) == "1"
    page.get_by_role("button", name="Next").click()
    assert page.get_by_role("button", name="Pause").count() == 0
    assert page.locator(".trace-rounds").get_attribute("aria-live") == "polite"


def test_nothing_moves_with_reduced_motion(page):
    name = "getComputedStyle(document.querySelector('[aria-current] .trace-chip')).animationName"
    page.emulate_media(reduced_motion="reduce")
    assert page.evaluate(name) == "none"
    page.emulate_media(reduced_motion="no-preference")
    assert page.evaluate(name) == "trace-appear"


def test_printed_or_without_its_script_all_rounds_are_there(page, stepper, visit):
    page.emulate_media(media="print")
    assert (shown(page, "round"), shown(page, "part"), shown(page, "word")) == (6, STEPS, 17)
    assert shown(page, "controls") == 0
    bare = visit(stepper, java_script_enabled=False).page
    assert (shown(bare, "round"), shown(bare, "part"), shown(bare, "word")) == (6, STEPS, 17)
    assert shown(bare, "controls") == 0


def test_it_speaks_chinese(page):
    page.evaluate("document.documentElement.lang = 'zh-CN'")
    page.get_by_role("button", name="下一步").click()
    assert "4 个中接受 4 个" in page.locator(".trace-part:visible").last.inner_text()
    assert page.get_by_role("button", name="Next").count() == 0


@pytest.mark.parametrize("light", ["light", "dark"])
@pytest.mark.parametrize("size", ["phone", "desk"])
def test_it_has_no_serious_fault_of_access_and_fits_the_screen(visit, stepper, size, light):
    visited = visit(stepper, size, light=light)
    for _ in range(4):
        visited.page.keyboard.press("Tab")
    visited.page.keyboard.press("End")
    for key in ("End", "ArrowLeft", "ArrowLeft", "ArrowLeft"):
        visited.page.keyboard.press(key)
        assert serious_faults(visited.page) == []
    visited.assert_sound()
