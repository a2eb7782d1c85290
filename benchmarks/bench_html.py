"""How long the page of a large run takes to write, and to open in a headless Chromium.

Run: python benchmarks/bench_html.py [n_cases]; needs jinja2, selenium, chromium and chromedriver.
"""

from __future__ import annotations

import shutil
import sys
import tempfile
import time
from pathlib import Path

from selenium import webdriver
from selenium.webdriver.chrome.options import Options
from selenium.webdriver.chrome.service import Service

from pytest_ctxfp import RunReport, fingerprint_context, gate_reports
from pytest_ctxfp._html import report_to_html
from pytest_ctxfp._report import CaseReport, SampleReport
from pytest_ctxfp._report_texts import keep_texts, read_layer_texts

N_LOADS = 3
LAYERS = "".join(f"## Layer {number}\n" + "- a line of a layer\n" * 20 for number in range(5))
STEPS = {
    "sort": "document.querySelector('[data-sort=cost]').click()",
    "search": "const box = document.getElementById('search'); box.value = 'in 19';"
    "box.dispatchEvent(new Event('input', {bubbles: true}))",
    "reset": "document.getElementById('filters').reset()",
    "open all": "document.getElementById('open-all').click()",
}


def main() -> None:
    """Write the page, open it a few times, and print a line for each figure."""
    n_cases = int(sys.argv[1]) if len(sys.argv) > 1 else 2_000
    before, after = make_run(n_cases, "old"), make_run(n_cases, "new")
    gate = gate_reports(before, after)
    started = time.perf_counter()
    html = report_to_html(after, gate, before)
    print(f"write      {time.perf_counter() - started:.2f} s, {len(html.encode()) / 1e6:.1f} MB")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "run.html"
        path.write_text(html, encoding="utf-8")
        measure(path)


def measure(path: Path) -> None:
    """Open a page and do what a visitor does."""
    options = Options()
    options.binary_location = shutil.which("chromium") or "/usr/bin/chromium"
    for flag in ("--headless=new", "--no-sandbox", "--disable-dev-shm-usage"):
        options.add_argument(flag)
    service = Service(shutil.which("chromedriver") or "/usr/bin/chromedriver")
    browser = webdriver.Chrome(options=options, service=service)
    try:
        for _ in range(N_LOADS):
            browser.get("about:blank")
            browser.get(path.as_uri())
            loaded = browser.execute_script(
                "return performance.getEntriesByType('navigation')[0].loadEventEnd"
            )
            print(f"load       {loaded / 1000:.2f} s")
        n_elements = browser.execute_script("return document.querySelectorAll('*').length")
        print(f"elements   {n_elements:,}")
        for name, code in STEPS.items():
            elapsed = browser.execute_async_script(
                "const done = arguments[0], start = performance.now();"
                + code
                + "; requestAnimationFrame(() => setTimeout(() => done(performance.now() - start)))"
            )
            print(f"{name:<10} {elapsed / 1000:.2f} s until painted")
    finally:
        browser.quit()


def make_run(n_cases: int, word: str) -> RunReport:
    """Return a run of which every tenth case fails."""
    texts: dict[str, str] = {}
    cases = []
    for number in range(n_cases):
        context = f"{LAYERS}## Rules\n- {word}\n## Question\nHow many in {number}?\n"
        texts.update(read_layer_texts(context, None))
        rows = [[f"2026-{month:02}", number + month] for month in range(1, 7)]
        is_right = number % 10 > 0
        sample = SampleReport(
            state="passed" if is_right else "failed",
            reason="6 rows as expected" if is_right else "row 1, column 'n': expected 1, actual -1",
            origin="hit" if number % 3 else "miss",
            key=f"{number:040x}",
            key_parts={"case_id": str(number), "agent_sha": "a", "model": "m", "context_sha": word},
            answer={"columns": ["month", "n"], "rows": rows if is_right else [["2026-01", -1], *rows[1:]]},
            cost=number / 1e5,
            latency_ms=number * 7 % 5_000,
            turns=number % 5,
        )
        cases.append(
            CaseReport(
                id=f"case_{number}",
                file="golden.yaml",
                position=number,
                model="m",
                tags=(f"tag{number % 12}",),
                question=f"How many in {number}?",
                expectation={"match": "set", "expected": {"columns": ["month", "n"], "rows": rows}},
                expectation_sha="e",
                context=fingerprint_context(context).to_dict(),
                samples=(sample,),
            )
        )
    return keep_texts(RunReport(cases=tuple(cases), mode="auto"), texts)


if __name__ == "__main__":
    main()
