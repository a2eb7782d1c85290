"""What a visitor does with the page of a run."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys

from pytest_ctxfp._html import report_to_html
from pytest_ctxfp._report_json import report_from_json, report_to_json

from .conftest import DESKTOP, PHONE, RULES, make_run

if TYPE_CHECKING:
    from collections.abc import Callable

    from .conftest import Page

ALL = [f"case_{number}" for number in range(12)]
HOSTILE_ID = '"><img src=x onerror=alert(1)>'
MARKUP = "<script>alert(2)</script></script><!-- <svg onload=alert(3)>"
RTL = "כמה הזמנות היו \u202e בחודש מאי؟ كم عدد الطلبات"


@pytest.fixture
def shop(page: Page, make_page: Callable[[int], str]) -> Page:
    """The page of twelve cases, opened."""
    page.open(make_page(12))
    return page


def sort_by(page: Page, label: str) -> tuple[list[str], str | None]:
    """Sort by a column; return the order and what a screen reader is told of it."""
    headers = page.driver.find_elements(By.CSS_SELECTOR, "#table > thead th")
    header = next(header for header in headers if header.text.startswith(label))
    header.find_element(By.TAG_NAME, "button").click()
    return page.names(), header.get_attribute("aria-sort")


def test_sorting(shop: Page) -> None:
    """A column sorts up and then down, names by their numbers, and what is unknown stays last."""
    names, told = sort_by(shop, "case")
    assert (names, told) == (ALL, "ascending")
    names, told = sort_by(shop, "case")
    assert (names, told) == (ALL[::-1], "descending")
    for direction in ("ascending", "descending"):
        names, told = sort_by(shop, "cost")
        assert (names[-1], told) == ("case_3", direction)
    assert len(shop.driver.find_elements(By.CSS_SELECTOR, "th[aria-sort]")) == 1
    names, _ = sort_by(shop, "verdict")
    assert names[:3] == ["case_0", "case_1", "case_2"]


def test_search(shop: Page) -> None:
    """Every word must stand in the id, question, reason or tags; the count is told to screen readers."""
    box = shop.one("#search")
    box.send_keys("many IN 1?")
    assert shop.names() == ["case_1", "case_11"]
    status = shop.one("#count")
    assert status.text == "2 of 12 cases shown"
    assert (status.get_attribute("role"), status.get_attribute("aria-live")) == ("status", "polite")
    box.send_keys(" nowhere")
    assert shop.names() == []
    assert shop.one("#none").is_displayed()
    shop.one("#filters [type=reset]").click()
    assert shop.names() == ALL
    box.send_keys("actual -5 orders")
    assert shop.names() == ["case_0"]


@pytest.mark.parametrize(
    ("filters", "wanted"),
    [
        ({"#by-state": "failed"}, ["case_0", "case_1", "case_2"]),
        ({"#by-tag": "finance"}, ["case_2", "case_5", "case_8", "case_11"]),
        ({"#by-origin": "miss", "#by-tag": "orders"}, ["case_0", "case_6"]),
        ({"#by-origin": "re-scored"}, ["case_1"]),
        ({"#by-kind": "context"}, ALL),
        ({"#by-verdict": "regression"}, ["case_1", "case_2"]),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, dict) else "",
)
def test_filters(shop: Page, filters: dict[str, str], wanted: list[str]) -> None:
    """Filters hold together: a case is shown if it fits all of them."""
    for selector, text in filters.items():
        shop.choose(selector, text)
    assert shop.names() == wanted


def test_flaky_cases(shop: Page) -> None:
    """The box leaves the cases whose samples disagree."""
    shop.one("#by-flaky").click()
    assert shop.names() == ["case_0"]


def test_a_case_by_keyboard(shop: Page) -> None:
    """The keyboard reaches a case and opens it, with a visible focus; the cells that differ are marked."""
    shop.one("#search").click()
    for _ in range(60):
        ActionChains(shop.driver).send_keys(Keys.TAB).perform()
        focused = shop.driver.switch_to.active_element
        if focused.tag_name == "summary":
            break
    assert focused.tag_name == "summary"
    assert shop.script("return getComputedStyle(document.activeElement).outlineStyle") == "solid"
    focused.send_keys(Keys.ENTER)
    body = shop.one("#case-1 .body")
    assert body.is_displayed()
    assert [mark.text for mark in body.find_elements(By.TAG_NAME, "mark")] == ["1003", "-5"]
    assert "How many in 0?" in body.text
    assert len(body.find_elements(By.CSS_SELECTOR, ".bar rect")) == 3


def test_from_a_layer_to_its_diff_and_back(shop: Page) -> None:
    """A changed layer links to the diff of its texts, which links back to the case, even a filtered one."""
    shop.script("document.querySelector('#case-5 details').open = true")
    link = shop.one("#case-5 .layers a")
    assert link.text == "show diff"
    shop.follow(link)
    diff = shop.one("#diff-1")
    assert diff.get_attribute("open") is not None
    assert diff.find_element(By.TAG_NAME, "del").text == "cents"
    assert diff.find_element(By.TAG_NAME, "ins").text == "euros"
    shop.choose("#by-state", "failed")
    assert "case_4" not in shop.names()
    shop.follow(diff.find_element(By.LINK_TEXT, "case_4"))
    assert "case_4" in shop.names()
    assert shop.one("#case-5 .body").is_displayed()
    shop.follow(link)
    shop.follow(diff.find_element(By.LINK_TEXT, "case_4"))
    assert shop.one("#case-5 summary") == shop.driver.switch_to.active_element


def test_gate_links_to_its_cases(shop: Page) -> None:
    """A case that the gate lists is one click away."""
    shop.follow(shop.one(".findings a"))
    assert shop.one("#case-2 .body").is_displayed()


@pytest.mark.parametrize("size", [DESKTOP, PHONE], ids=["desktop", "phone"])
def test_both_themes_are_accessible(
    page: Page, make_page: Callable[[int], str], size: tuple[int, int]
) -> None:
    """Axe finds nothing serious in either theme, with all open; the page itself never scrolls sideways."""
    page.open(make_page(12), size=size)
    page.script("for (const one of document.querySelectorAll('details')) one.open = true")
    backgrounds = set()
    for _ in range(2):
        assert page.scan() == []
        backgrounds.add(page.script("return getComputedStyle(document.body).backgroundColor"))
        assert page.script("return document.documentElement.scrollWidth") <= size[0]
        page.one("#theme").click()
    assert len(backgrounds) == 2


def test_system_theme(page: Page, make_page: Callable[[int], str]) -> None:
    """Without a choice the page is as dark as the system; the button names the other theme."""
    html = make_page(2)
    labels = []
    page.open(html)
    page.script("localStorage.clear()")
    for scheme in ("light", "dark"):
        feature = {"name": "prefers-color-scheme", "value": scheme}
        page.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [feature]})
        page.open(html)
        labels.append(page.one("#theme").text)
    assert labels == ["Dark theme", "Light theme"]


def test_hostile_texts_do_no_harm(page: Page) -> None:
    """Markup, right-to-left text and 200 kB in a case are text: nothing runs, fails or is fetched."""
    run = make_run(2, RULES + MARKUP + "\n", n_wrong=2)
    first = run.cases[0]
    answer = f"{MARKUP} {RTL} " + "x" * 200_000
    sample = replace(first.samples[0], answer=answer, reason=MARKUP)
    case = replace(first, id=HOSTILE_ID, question=f"{MARKUP}\n{RTL}", tags=(HOSTILE_ID,), samples=(sample,))
    run = report_from_json(report_to_json(replace(run, cases=(case, run.cases[1]), notes=(MARKUP,))))
    page.open(report_to_html(run))
    page.one("#open-all").click()
    sort_by(page, "case")
    page.choose("#by-tag", HOSTILE_ID)
    assert page.names() == [HOSTILE_ID]
    body = page.one("#case-1 .body")
    assert MARKUP in body.find_element(By.CSS_SELECTOR, ".question").text
    assert re.search(
        r"the answer is 200,\d\d\d bytes of JSON, of which 4,000 characters are shown", body.text
    )
    assert "\\u202e" in body.text
    assert page.driver.find_elements(By.CSS_SELECTOR, "img, iframe, body script ~ script") == []
    assert page.script("return document.scripts.length") == 1
    # An alert that is open would have failed every command since.
    assert page.drain_logs() == ([], [])


def test_the_policy_holds(page: Page, make_page: Callable[[int], str]) -> None:
    """Even markup that got into the page could run and fetch nothing."""
    forged = (
        '<p id="forged">here</p><img src="https://example.org/x.png"><script>window.harm = 1</script></main>'
    )
    page.open(make_page(2).replace("</main>", forged))
    assert page.one("#forged").is_displayed()
    assert page.script("return window.harm") is None
    console, requested = page.drain_logs()
    assert any("Content Security Policy" in message for message in console)
    assert not [url for url in requested if "example.org" in url]


def test_without_scripts_all_is_there(page: Page, make_page: Callable[[int], str]) -> None:
    """Where scripts are off, cases still open, and nothing that would not work is shown."""
    page.driver.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": True})
    page.open(make_page(3))
    page.one("#case-1 summary").click()
    page.driver.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": False})
    assert page.one("#case-1 .body").is_displayed()
    assert not page.one("#filters").is_displayed()
    assert not page.one("#theme").is_displayed()


def test_print(page: Page, make_page: Callable[[int], str]) -> None:
    """On paper details are readable though closed, and filters are gone."""
    page.open(make_page(3))
    page.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "print"})
    is_shown = "return document.querySelector('#case-1 .body').checkVisibility()"
    assert page.script(is_shown)
    assert page.one("#case-1 .body").size["height"] > 200
    assert not page.one("#filters").is_displayed()


def test_many_cases(
    page: Page, make_page: Callable[[int], str], record_testsuite_property: Callable[..., None]
) -> None:
    """2,000 cases open, sort, search and follow a link; how long that took is printed."""
    page.open(make_page(2_000))
    load_ms = page.script("return performance.getEntriesByType('navigation')[0].loadEventEnd")
    names, _ = sort_by(page, "case")
    assert names == [f"case_{number}" for number in range(2_000)]
    page.one("#search").send_keys("many in 1999?")
    assert page.names() == ["case_1999"]
    record_testsuite_property("load_ms", load_ms)
    print(f"2,000 cases: loaded in {load_ms:.0f} ms")  # noqa: T201 - a measurement, shown with -rP
