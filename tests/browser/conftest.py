"""Pages in a real browser: a headless Chromium, driven by selenium."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from selenium import webdriver
from selenium.webdriver.chrome.options import Options
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.common.by import By
from selenium.webdriver.support.ui import WebDriverWait

from pytest_ctxfp import RunReport, fingerprint_context, gate_reports
from pytest_ctxfp._html import report_to_html
from pytest_ctxfp._report import CaseReport, SampleReport
from pytest_ctxfp._report_texts import keep_texts, read_layer_texts

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from selenium.webdriver.remote.webelement import WebElement

RULES = "".join(f"- Rule {number}: amounts are in cents.\n" for number in range(20))
EDITED = RULES.replace("Rule 7: amounts are in cents", "Rule 7: amounts are in euros")
TAGS = ("orders", "customers", "finance")
DESKTOP, PHONE = (1280, 900), (390, 844)


class Page:
    """A page in the browser, and what a visitor does with it."""

    def __init__(self, driver: webdriver.Chrome, folder: Path) -> None:
        self.driver = driver
        self._folder = folder

    def open(self, html: str, *, size: tuple[int, int] = DESKTOP) -> None:
        """Open a page from a file, in a window of some size in CSS pixels."""
        path = self._folder / "page.html"
        path.write_text(html, encoding="utf-8")
        # Set for the page, not for the window: a window is never as narrow as a phone.
        self.driver.execute_cdp_cmd(
            "Emulation.setDeviceMetricsOverride",
            {"width": size[0], "height": size[1], "deviceScaleFactor": 1, "mobile": False},
        )
        self.drain_logs()
        self.driver.get("about:blank")
        self.driver.get(path.as_uri())

    def one(self, selector: str) -> WebElement:
        """Return the first element that a selector finds."""
        return self.driver.find_element(By.CSS_SELECTOR, selector)

    def script(self, code: str, *arguments: object) -> object:
        """Run a script in the page, past its own policy, as developer tools do."""
        return self.driver.execute_script(code, *arguments)

    def names(self) -> list[str]:
        """Return the names of the cases that are shown, in their order."""
        found = self.script(
            "return [...document.querySelectorAll('#table > tbody')].filter((body) => !body.hidden)"
            ".map((body) => body.querySelector('.name').textContent)"
        )
        assert isinstance(found, list)
        return found

    def follow(self, link: WebElement) -> None:
        """Click a link within the page, and wait until its target has the focus."""
        target = str(link.get_attribute("href")).partition("#")[2]
        link.click()
        is_there = "return document.getElementById(arguments[0]).contains(document.activeElement)"
        WebDriverWait(self.driver, 10).until(lambda _: self.script(is_there, target))

    def choose(self, selector: str, text: str) -> None:
        """Choose an option of a list."""
        options = self.one(selector).find_elements(By.TAG_NAME, "option")
        next(option for option in options if option.text == text).click()

    def drain_logs(self) -> tuple[list[str], list[str]]:
        """Return what the console said and what else than the page was requested since the last time."""
        console = [entry["message"] for entry in self.driver.get_log("browser")]
        events = [json.loads(entry["message"])["message"] for entry in self.driver.get_log("performance")]
        blocked = {event["params"]["requestId"] for event in events if "blockedReason" in event["params"]}
        requested = [
            event["params"]["request"]["url"]
            for event in events
            if event["method"] == "Network.requestWillBeSent" and event["params"]["requestId"] not in blocked
        ]
        return console, [url for url in requested if not url.endswith("/page.html") and url != "about:blank"]

    def scan(self) -> list[str]:
        """Return the serious and critical findings of axe-core."""
        self.driver.execute_script(_axe_source())
        results = self.driver.execute_async_script(
            "const done = arguments[0];"
            "axe.run(document, {resultTypes: ['violations']}).then(done, (error) => done(String(error)));"
        )
        assert isinstance(results, dict), results
        return [
            f"{found['id']}: {found['help']}: {found['nodes'][0]['html']}"
            for found in results["violations"]
            if found["impact"] in ("serious", "critical")
        ]


def _axe_source() -> str:
    """Return axe-core, of which this package brings a copy; the package itself isn't imported."""
    spec = find_spec("axe_playwright_python")
    assert spec is not None, "install it: pip install --no-deps axe-playwright-python"
    assert spec.submodule_search_locations is not None
    return (Path(spec.submodule_search_locations[0]) / "axe.min.js").read_text(encoding="utf-8")


@pytest.fixture(scope="session")
def driver() -> Iterator[webdriver.Chrome]:
    """The browser, for all tests."""
    options = Options()
    options.binary_location = shutil.which("chromium") or "/usr/bin/chromium"
    for flag in ("--headless=new", "--no-sandbox", "--disable-dev-shm-usage", "--lang=en"):
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    service = Service(shutil.which("chromedriver") or "/usr/bin/chromedriver")
    browser = webdriver.Chrome(options=options, service=service)
    browser.set_script_timeout(120)
    yield browser
    browser.quit()


@pytest.fixture
def page(driver: webdriver.Chrome, tmp_path: Path) -> Iterator[Page]:
    """A page to open, in a browser that is as it was at the start."""
    yield Page(driver, tmp_path)
    driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "", "features": []})
    driver.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": False})


def make_run(n_cases: int, rules: str, *, n_wrong: int) -> RunReport:
    """Return a run of so many cases, of which the first ones are answered wrongly."""
    texts: dict[str, str] = {}
    cases = []
    for number in range(n_cases):
        context = f"You answer.\n## Rules\n{rules}## Question\nHow many in {number}?\n"
        texts.update(read_layer_texts(context, None))
        cases.append(_make_case(number, context, rules, is_right=number >= n_wrong))
    run = RunReport(
        cases=tuple(cases),
        dataset="shop",
        mode="auto",
        recorded_at="2026-11-30T18:22:04+00:00",
        recorded_by="pytest-ctxfp",
    )
    return keep_texts(run, texts)


def _make_case(number: int, context: str, rules: str, *, is_right: bool) -> CaseReport:
    rows = [[f"2026-{month:02}", 1000 + month] for month in range(1, 7)]
    wrong = [*rows[:2], [rows[2][0], -5], *rows[3:]]
    sample = SampleReport(
        state="passed" if is_right else "failed",
        reason="6 rows as expected" if is_right else "row 3, column 'usd': expected 1003, actual -5",
        origin="hit" if number % 2 else "miss",
        rescored=number == 1,
        key=f"{number:040x}",
        key_parts={"case_id": str(number), "agent_sha": "a", "model": "m", "context_sha": str(hash(rules))},
        answer={"columns": ["month", "usd"], "rows": rows if is_right else wrong},
        cost=None if number == 3 else (number * 7 % 11) / 100,
        latency_ms=100 * (number * 5 % 13),
        turns=number % 4,
    )
    other = replace(sample, sample=1, state="passed", answer={"columns": ["month", "usd"], "rows": rows})
    return CaseReport(
        id=f"case_{number}",
        file="golden.yaml",
        position=number,
        model="m",
        tags=(TAGS[number % 3],),
        question=f"How many in {number}?",
        expectation={"match": "set", "expected": {"columns": ["month", "usd"], "rows": rows}},
        expectation_sha="e",
        context=fingerprint_context(context).to_dict(),
        samples=(sample, other) if number == 0 else (sample,),
    )


@pytest.fixture(scope="session")
def make_page() -> Callable[[int], str]:
    """A function from a number of cases to a page of theirs, held against a baseline with other rules."""

    def make(n_cases: int) -> str:
        before = make_run(n_cases, RULES, n_wrong=1)
        after = make_run(n_cases, EDITED, n_wrong=3)
        return report_to_html(after, gate_reports(before, after), before)

    return make
