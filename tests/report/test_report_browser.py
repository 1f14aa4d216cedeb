"""The report opened in a real headless Chromium: it works, shows what it should, and nothing of its input runs."""

from __future__ import annotations

import base64
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from selenium import webdriver
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.support.ui import Select, WebDriverWait

from stream_validator.report.html import write_report
from tests.conftest import RequireComponent
from tests.report.report_world import HOSTILE, World
from tests.report.test_report_page import _hostile_world

FLAGS = (
    "--headless=new --no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking "
    "--disable-component-update --disable-sync --disable-dev-shm-usage --window-size=1440,1000"
)
CHARTS = (
    "series rules ufs heat-time heat-ufs overruns histogram flows suspicions exceptions unjudged signatures schemas"
)

#: Pairs of visible labels of one chart that overlap by more than two pixels both ways.
OVERLAPS = """
const found = [];
for (const svg of document.querySelectorAll("svg.chart")) {
  const boxes = [...svg.querySelectorAll("text")].filter((text) => getComputedStyle(text).display !== "none")
    .map((text) => [text.textContent, text.getBoundingClientRect()]).filter(([, box]) => box.width > 0);
  for (let i = 0; i < boxes.length; i += 1) for (let j = i + 1; j < boxes.length; j += 1) {
    const [a, b] = [boxes[i][1], boxes[j][1]];
    const wide = Math.min(a.right, b.right) - Math.max(a.left, b.left);
    const high = Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top);
    if (wide > 2 && high > 4) found.push([svg.closest("figure")?.id ?? "", boxes[i][0], boxes[j][0]]);
  }
}
return found;
"""
#: Labels of charts that reach beyond the drawing they belong to.
CUT_OFF = """
const found = [];
for (const svg of document.querySelectorAll("svg.chart")) {
  const frame = svg.getBoundingClientRect();
  for (const text of svg.querySelectorAll("text")) {
    if (getComputedStyle(text).display === "none") continue;
    const box = text.getBoundingClientRect();
    if (box.left < frame.left - 2 || box.right > frame.right + 2 || box.top < frame.top - 2 || box.bottom > frame.bottom + 3)
      found.push([svg.closest("figure")?.id ?? "", text.textContent]);
  }
}
return found;
"""
#: Elements that make the page wider than the window, outside of what scrolls by itself.
TOO_WIDE = """
return [...document.querySelectorAll("body *")].filter((element) => {
  if (element.getBoundingClientRect().right <= innerWidth + 1) return false;
  for (let up = element.parentElement; up; up = up.parentElement)
    if (getComputedStyle(up).overflowX !== "visible") return false;
  return true;
}).map((element) => element.tagName + "." + (element.className.baseVal ?? element.className)).slice(0, 5);
"""
#: How far the top of an alert is below the bar of filters, or below the window's edge where the bar scrolls away.
TOP = (
    "document.getElementById('{}').getBoundingClientRect().top"
    " - Math.max(0, document.getElementById('filters').getBoundingClientRect().bottom)"
)
#: Tables of the sections (not inside an alert) that are wider than their room.
CUT_TABLES = """
return [...document.querySelectorAll(".scroll")].filter((one) => !one.closest("details"))
  .filter((one) => one.scrollWidth > one.clientWidth + 1).map((one) => one.firstElementChild.id);
"""


@pytest.fixture(scope="module")
def start(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[], webdriver.Chrome]]:
    """Starts the browser at the first call; one for all tests of this file."""
    running: list[webdriver.Chrome] = []

    def begin() -> webdriver.Chrome:
        if not running:
            options = webdriver.ChromeOptions()
            options.binary_location = shutil.which("chromium") or ""
            for flag in FLAGS.split():
                options.add_argument(flag)
            options.add_argument(f"--user-data-dir={tmp_path_factory.mktemp('profile')}")
            options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
            running.append(webdriver.Chrome(options=options, service=Service(shutil.which("chromedriver"))))
        return running[0]

    yield begin
    for browser in running:
        browser.quit()


@pytest.fixture
def browser(require_component: RequireComponent, start: Callable[[], webdriver.Chrome]) -> Iterator[webdriver.Chrome]:
    require_component("chromium")
    require_component("chromedriver")
    running = start()
    yield running
    running.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})


def _open(browser: webdriver.Chrome, page: Path, language: str = "pt-BR", theme: str = "light") -> None:
    browser.get_log("browser")  # type: ignore[no-untyped-call]
    browser.get(f"{page.as_uri()}?lang={language}&theme={theme}")


def _errors(browser: webdriver.Chrome) -> list[Any]:
    return list(browser.get_log("browser"))  # type: ignore[no-untyped-call]


def _visible(browser: webdriver.Chrome) -> int:
    script = (
        "return [...document.querySelectorAll('#alert-list > details')].filter((one) => one.offsetHeight > 0).length"
    )
    return int(_ask(browser, script))


def _count(browser: webdriver.Chrome) -> int:
    shown = browser.find_element(By.CSS_SELECTOR, "#count b").text
    return int(shown.replace(".", "").replace(",", ""))


def _until(browser: webdriver.Chrome, holds: Callable[[], bool]) -> None:
    WebDriverWait(browser, 5).until(lambda _: holds())


def _ask(browser: webdriver.Chrome, script: str) -> Any:
    return browser.execute_script(script)


def _picture(browser: webdriver.Chrome, path: Path, width: int) -> int:
    """A picture of the whole page, and its size in bytes."""
    height = min(int(_ask(browser, "return document.documentElement.scrollHeight")), 9000)
    clip = {"x": 0, "y": 0, "width": width, "height": height, "scale": 1}
    taken = browser.execute_cdp_cmd("Page.captureScreenshot", {"captureBeyondViewport": True, "clip": clip})
    path.write_bytes(base64.b64decode(taken["data"]))
    return path.stat().st_size


def test_it_opens_without_errors_and_asks_nobody(browser: webdriver.Chrome, page: Path) -> None:
    _open(browser, page)
    assert _errors(browser) == []
    assert _ask(browser, "return performance.getEntriesByType('resource').map((entry) => entry.name)") == []
    assert browser.title == "Documentos fiscais de GLP: relatório do julgamento"


def test_every_chart_has_size_and_a_name(browser: webdriver.Chrome, page: Path) -> None:
    _open(browser, page)
    for name in CHARTS.split():
        chart = browser.find_element(By.CSS_SELECTOR, f"#chart-{name} svg")
        assert chart.size["width"] > 200, name
        assert chart.size["height"] > 10, name
        assert chart.get_attribute("aria-label")


def test_the_eye_of_these_tests_sees_overlaps_and_cuts(browser: webdriver.Chrome, page: Path) -> None:
    _open(browser, page)
    _ask(
        browser,
        """
        const text = document.querySelector("#chart-flows svg text");
        text.parentNode.append(text.cloneNode(true));
        const other = text.cloneNode(true);
        other.setAttribute("x", -500);
        text.parentNode.append(other);
        const wide = document.createElement("hr");
        wide.style.width = "3000px";
        document.querySelector("main").append(wide);
        """,
    )
    assert [where for where, *_ in _ask(browser, OVERLAPS)] == ["chart-flows"]
    assert [where for where, _ in _ask(browser, CUT_OFF)] == ["chart-flows"]
    assert "HR." in _ask(browser, TOO_WIDE)


@pytest.mark.parametrize(("language", "theme"), [("pt-BR", "light"), ("en", "dark")])
def test_it_looks_right_in_both_languages_and_themes(
    browser: webdriver.Chrome, page: Path, tmp_path: Path, language: str, theme: str
) -> None:
    _open(browser, page, language, theme)
    assert _ask(browser, OVERLAPS) == []
    assert _ask(browser, CUT_OFF) == []
    assert _ask(browser, TOO_WIDE) == []
    assert _ask(browser, "return document.documentElement.scrollWidth <= innerWidth")
    background = _ask(browser, "return getComputedStyle(document.body).backgroundColor")
    red = int(background.removeprefix("rgb(").split(",")[0])
    assert red > 200 if theme == "light" else red < 60
    assert _picture(browser, tmp_path / f"{language}-{theme}.png", 1440) > 100_000
    assert _errors(browser) == []


@pytest.mark.parametrize("language", ["pt-BR"])
def test_it_fits_a_phone(browser: webdriver.Chrome, page: Path, tmp_path: Path, language: str) -> None:
    phone = {"width": 390, "height": 844, "deviceScaleFactor": 2, "mobile": True}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", phone)
    _open(browser, page, language)
    assert _ask(browser, "return document.documentElement.scrollWidth") == 390
    assert _ask(browser, TOO_WIDE) == []
    assert _ask(browser, OVERLAPS) == []
    assert _picture(browser, tmp_path / f"phone-{language}.png", 390) > 50_000


def test_switching_to_english_changes_texts_numbers_and_names(browser: webdriver.Chrome, page: Path) -> None:
    _open(browser, page)
    heading = browser.find_element(By.ID, "unjudged")
    number = browser.find_element(By.ID, "h-documents")
    hint = browser.find_element(By.CSS_SELECTOR, "#filters input")
    assert (heading.text, number.text) == ("O que não pôde ser julgado", "1.500")
    browser.find_element(By.CSS_SELECTOR, "[data-set-lang=en]").click()
    assert (heading.text, number.text) == ("What could not be judged", "1,500")
    assert browser.title == "LPG fiscal documents: report of the judgement"
    assert _ask(browser, "return document.documentElement.lang") == "en"
    assert hint.get_attribute("placeholder") == "CNPJ, key, word…"
    chart = browser.find_element(By.CSS_SELECTOR, "#chart-flows svg")
    assert chart.get_attribute("aria-label") == "Sales between roles, from the left (seller) to the right (buyer)"
    assert "Violações" not in browser.find_element(By.TAG_NAME, "main").text
    browser.find_element(By.CSS_SELECTOR, "[data-set-lang='pt-BR']").click()
    assert heading.text == "O que não pôde ser julgado"


def test_filters_and_search_find_the_alerts(browser: webdriver.Chrome, page: Path, world: World) -> None:
    _open(browser, page)
    assert _count(browser) == _visible(browser) == len(world.alerts)
    Select(browser.find_element(By.NAME, "rule")).select_by_value("C01")
    c01 = sum(alert.rule == "C01" for alert in world.alerts)
    _until(browser, lambda: _count(browser) == c01)
    assert _visible(browser) == c01
    Select(browser.find_element(By.NAME, "state")).select_by_value("closed")
    _until(browser, lambda: _visible(browser) == sum(a.rule == "C01" and a.state == "closed" for a in world.alerts))
    browser.find_element(By.CSS_SELECTOR, "#filters [type=reset]").click()
    _until(browser, lambda: _visible(browser) == len(world.alerts))
    subject = next(alert.subject for alert in world.alerts if alert.subject and len(alert.subject) == 14)
    search = browser.find_element(By.NAME, "text")
    search.send_keys(subject.lower())
    _until(
        browser,
        lambda: (
            _visible(browser) == sum(subject in (a.subject, a.counterpart) or subject in a.key for a in world.alerts)
        ),
    )
    search.clear()
    search.send_keys("CAPACIDADE excesso")
    _until(browser, lambda: 0 < _visible(browser) <= c01)
    search.clear()
    search.send_keys("no such word anywhere")
    _until(browser, lambda: browser.find_element(By.ID, "nothing").is_displayed())
    assert _count(browser) == 0
    assert _errors(browser) == []


def test_the_keyboard_is_enough(browser: webdriver.Chrome, page: Path) -> None:
    _open(browser, page)
    english = browser.find_element(By.CSS_SELECTOR, "[data-set-lang=en]")
    english.send_keys(Keys.ENTER)
    assert browser.find_element(By.ID, "unjudged").text == "What could not be judged"
    alert = browser.find_element(By.CSS_SELECTOR, "#alert-list > details[data-rule=C01]")
    assert not alert.find_element(By.CLASS_NAME, "sum").is_displayed()
    alert.find_element(By.TAG_NAME, "summary").send_keys(Keys.ENTER)
    assert alert.find_element(By.CLASS_NAME, "sum").is_displayed()
    reachable = _ask(
        browser,
        "return [...document.querySelectorAll('a[href], button, summary, select, input')].every((one) => one.tabIndex >= 0)",
    )
    assert reachable


def test_the_sum_of_an_alert_adds_up_on_the_screen(browser: webdriver.Chrome, page: Path) -> None:
    _open(browser, page, "en")
    alert = browser.find_element(By.CSS_SELECTOR, "#alert-list > details[data-rule=C01]")
    alert.find_element(By.TAG_NAME, "summary").click()
    cells = [cell.text for cell in alert.find_elements(By.CSS_SELECTOR, ".sum td:last-child")]
    figures = [int(cell.removesuffix(" kg").replace(",", "")) for cell in cells]
    *lines, total, capacity, excess = figures
    assert sum(lines) == total
    assert total - capacity == excess > 0


def test_a_link_to_an_alert_opens_it(browser: webdriver.Chrome, page: Path) -> None:
    _open(browser, page)
    browser.find_element(By.CSS_SELECTOR, "#chart-overruns").find_element(
        By.XPATH, "ancestor::section//summary"
    ).click()
    link = browser.find_element(By.CSS_SELECTOR, "#overruns-table a")
    name = (link.get_attribute("href") or "").partition("#")[2]
    link.click()
    _until(browser, lambda: browser.find_element(By.ID, name).get_attribute("open") is not None)


@pytest.mark.parametrize("language", ["pt-BR", "en"])
@pytest.mark.parametrize("width", [1280, 700])
def test_a_linked_alert_is_not_hidden_by_the_filters(
    browser: webdriver.Chrome, page: Path, language: str, width: int
) -> None:
    size = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": False}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    _open(browser, page, language)
    name = _ask(browser, "return document.querySelectorAll('#alert-list > details')[20].id")
    browser.get("about:blank")
    browser.get(f"{page.as_uri()}?lang={language}#{name}")
    _until(browser, lambda: 0 <= float(_ask(browser, f"return {TOP.format(name)}")) < 60)


@pytest.mark.parametrize("language", ["pt-BR", "en"])
def test_tables_and_tags_fit_a_small_desktop(browser: webdriver.Chrome, page: Path, language: str) -> None:
    size = {"width": 1280, "height": 900, "deviceScaleFactor": 1, "mobile": False}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    _open(browser, page, language)
    assert _ask(browser, CUT_TABLES) == []
    _ask(browser, "document.querySelectorAll('#alert-list > details').forEach((one) => { one.open = true; })")
    lines = (
        "return Math.max(...[...document.querySelectorAll('.unsure, .sure')].map((one) => one.getClientRects().length))"
    )
    assert _ask(browser, lines) == 1


def test_it_prints_whatever_the_theme(browser: webdriver.Chrome, page: Path) -> None:
    _open(browser, page, "en", "dark")
    printed = browser.execute_cdp_cmd("Page.printToPDF", {"printBackground": True})
    assert base64.b64decode(printed["data"]).startswith(b"%PDF-")
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "print"})
    try:
        assert not browser.find_element(By.TAG_NAME, "nav").is_displayed()
        assert _ask(browser, "return getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    finally:
        browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": ""})


@pytest.mark.parametrize("text", HOSTILE, ids=["script", "style", "close-script", "bidi", "quotes", "long"])
def test_hostile_text_does_not_run(browser: webdriver.Chrome, tmp_path: Path, text: str) -> None:
    page = write_report(_hostile_world(text).write(tmp_path))
    for language in ("pt-BR", "en"):
        _open(browser, page, language)
        _ask(browser, "document.querySelectorAll('details').forEach((one) => { one.open = true; })")
        assert browser.title in {
            "Documentos fiscais de GLP: relatório do julgamento",
            "LPG fiscal documents: report of the judgement",
        }
        assert (
            _ask(browser, "return document.querySelectorAll('main script, main style, main img, svg svg').length") == 0
        )
        assert _ask(browser, TOO_WIDE) == []
        assert _ask(browser, "return document.documentElement.scrollWidth <= innerWidth")
        assert _errors(browser) == []


def test_an_empty_replay_opens_too(browser: webdriver.Chrome, tmp_path: Path) -> None:
    _open(browser, write_report(World().write(tmp_path)))
    assert _errors(browser) == []
    assert browser.find_element(By.ID, "h-documents").text == "0"
