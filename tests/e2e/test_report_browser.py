"""The report in a real browser: it draws, sorts, filters, prints and fits its window, and asks nobody for anything."""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import pipeline_plans
import plans
from chipwise.planner.values.pipeline import PipelinePlan
from chipwise.planner.values.plan import Plan
from chipwise.report.page import page as written
from chipwise.report.pipeline_page import pipeline_page
from patience import FACTOR

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

pytestmark = pytest.mark.e2e
BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
WIDTHS = (400, 1400)


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    sync = pytest.importorskip("playwright.sync_api", reason="needs playwright: pip install playwright")
    found = next(filter(None, map(shutil.which, BROWSERS)), None)
    if found is None:
        pytest.skip(f"needs a browser: none of {', '.join(BROWSERS)} is on the path (Debian: apt install chromium)")
    with sync.sync_playwright() as playwright:
        opened = playwright.chromium.launch(executable_path=found, args=["--no-sandbox"])
        yield opened
        opened.close()


@dataclass
class Opened:
    """A report in a window, with what it said and asked for."""

    page: Page
    said: list[str] = field(default_factory=list)
    asked: list[str] = field(default_factory=list)


Show = Callable[..., Opened]


@pytest.fixture
def show(browser: Browser, tmp_path: Path) -> Iterator[Show]:
    """Opens a report; whatever a test does with it, it says nothing to the console and loads nothing but itself."""
    path = tmp_path / "report.html"
    opened: list[Opened] = []

    def open_report(plan: Plan | PipelinePlan, width: int = 1400) -> Opened:
        today = date(2026, 11, 15)
        html = pipeline_page(plan, today) if isinstance(plan, PipelinePlan) else written(plan, today)
        path.write_text(html, encoding="utf-8")
        one = Opened(browser.new_page(viewport={"width": width, "height": 900}))
        one.page.set_default_timeout(1000 * FACTOR * 30)
        one.page.on("console", lambda message: one.said.append(f"{message.type}: {message.text}"))
        one.page.on("pageerror", lambda error: one.said.append(str(error)))
        one.page.on("request", lambda request: one.asked.append(request.url))
        one.page.goto(path.as_uri())
        opened.append(one)
        return one

    yield open_report
    for one in opened:
        one.page.wait_for_timeout(100)
        one.page.close()
        assert one.said == []
        assert [url for url in one.asked if not url.startswith("data:")] == [path.as_uri()]


PIPELINES = {
    "pipeline": pipeline_plans.pipeline(),
    "chain": pipeline_plans.chain(),
    "no pipeline": pipeline_plans.nothing(),
    "hostile pipeline": pipeline_plans.hostile(),
}
EVERY = (
    {one.kind[:8]: one for one in (plans.plan(), plans.service(), plans.hostile())} | {"nothing": plans.nothing()} | PIPELINES
)


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("name", EVERY)
def test_nothing_is_wider_than_the_window(show: Show, name: str, width: int) -> None:
    page = show(EVERY[name], width).page
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    too_wide = "e => e.getBoundingClientRect().right > innerWidth + 1 && !e.closest('.wide')"
    assert (
        page.evaluate(f"[...document.querySelectorAll('main *')].filter({too_wide}).map(e => e.outerHTML.slice(0, 80))") == []
    )


@pytest.mark.parametrize("width", WIDTHS)
def test_every_chart_is_drawn_with_its_points(show: Show, width: int) -> None:
    plan = plans.plan()
    page = show(plan, width).page
    assert page.locator(".plot .main-svg:visible").count() == page.locator(".plot").count() >= 3
    assert page.locator("#chart-pareto .scatterlayer .point:visible").count() >= len(plan.choices)
    assert page.locator("#chart-costs .barlayer .point:visible").count() >= len(plan.choices)
    assert page.locator("#chart-memory .barlayer .point:visible").count() == 4
    assert page.locator("#chart-against .barlayer .point:visible").count() == len(plan.choices)
    for name in ("against", "pareto", "costs", "memory"):
        assert page.evaluate(CUT, f"#chart-{name}") == []


@pytest.mark.parametrize("width", WIDTHS)
def test_a_pipeline_is_drawn_with_its_stages_hand_offs_and_charts(show: Show, width: int) -> None:
    plan = pipeline_plans.pipeline()
    page = show(plan, width).page
    assert page.locator(".stages svg rect").count() == len(plan.stages)
    assert page.locator(".stages svg g > path").count() == len(plan.hand_offs)
    for name in ("stage-costs", "stage-times", "stage-front"):
        assert page.locator(f"#chart-{name} .main-svg").count() >= 1
        assert page.evaluate(CUT, f"#chart-{name}") == []
    assert page.evaluate(SPILT) == []


# Texts of a stage that reach over the edge of their box.
SPILT = """[...document.querySelectorAll('.stages svg g')].filter(g => g.querySelector('rect')).flatMap(g => {
  const box = g.querySelector('rect').getBoundingClientRect();
  return [...g.querySelectorAll('text')].filter(one => {
    const own = one.getBoundingClientRect();
    return own.left < box.left || own.right > box.right || own.top < box.top || own.bottom > box.bottom;
  }).map(one => one.textContent);
})"""


# Texts of a chart that reach over its edge.
CUT = """place => {
  const box = document.querySelector(place).getBoundingClientRect();
  return [...document.querySelectorAll(place + ' .main-svg text')].filter(one => {
    const own = one.getBoundingClientRect();
    return own.width && (own.left < box.left - 1 || own.right > box.right + 1 || own.bottom > box.bottom + 1);
  }).map(one => one.textContent);
}"""


def test_a_point_tells_its_story_when_the_mouse_is_over_it(show: Show) -> None:
    page = show(plans.plan()).page
    bar = page.locator("#chart-costs .barlayer .point:visible").first
    assert "compute $90.00 of $100" in (bar.locator("title").text_content() or "")


def column(page: Page, at: int) -> list[str]:
    return page.locator(f"#ranking tbody tr:visible td:nth-child({at})").all_inner_texts()


def test_a_click_on_a_heading_sorts_and_another_turns_it_round(show: Show) -> None:
    page = show(plans.plan()).page
    assert column(page, 1) == ["1", "2", "3", "4", "5"]
    heading = page.get_by_role("button", name="USD/job")
    heading.click()
    assert column(page, 6) == ["$100", "$110", "$150", "$300", "$400"]
    heading.press("Enter")
    assert column(page, 6) == ["$400", "$300", "$150", "$110", "$100"]
    assert page.locator("th[aria-sort=descending]").count() == 1
    memory = page.get_by_role("button", name="memory")
    memory.click()
    assert column(page, 9)[-1] == "-"
    memory.click()
    assert column(page, 9)[-1] == "-"  # unknown is last, either way


def test_the_ranking_is_narrowed_by_words_family_and_purchase(show: Show) -> None:
    page = show(plans.plan()).page
    page.get_by_label("Filter").fill("aws p4d")
    assert column(page, 1) == ["3"]
    page.get_by_label("Filter").fill("")
    page.get_by_label("all families").select_option("NVIDIA Hopper")
    assert column(page, 1) == ["1", "2", "4"]
    page.get_by_label("all ways to buy").select_option("on-demand")
    assert column(page, 1) == ["4"]
    assert page.locator("#shown").text_content() == "1 of 5 shown"


def test_a_long_ranking_is_shown_when_asked_for(show: Show) -> None:
    many = tuple(plans.choice(machine=f"machine-{at}", machines=at + 1, usd=100.0 + at) for at in range(60))
    page = show(plans.plan(choices=many)).page
    assert len(column(page, 1)) == 25
    page.get_by_role("button", name="Show all 60").click()
    assert len(column(page, 1)) == 60


def test_what_is_alike_opens_below_the_best_of_it(show: Show) -> None:
    alike = tuple(plans.choice(region=f"region-{at}", usd=100.0 + at) for at in range(3))
    page = show(plans.plan(choices=alike), 400).page
    assert len(column(page, 1)) == 1
    assert not page.locator("#ranking").get_by_text("in region-2").is_visible()
    page.get_by_text("2 more alike").click()
    assert page.locator("#ranking").get_by_text("in region-2").is_visible()
    tops = [page.locator(f"#{name}").bounding_box() for name in ("numbers", "choices", "how")]
    assert [one["y"] for one in tops if one] == sorted(one["y"] for one in tops if one)


def test_a_phone_shows_what_every_choice_costs_and_still_sorts(show: Show) -> None:
    plan = plans.plan()
    page = show(plan, 390).page
    for rank in range(len(plan.choices)):
        cost = page.locator("#ranking tbody td[data-label='USD/job']").nth(rank)
        cost.scroll_into_view_if_needed()
        box = cost.bounding_box()
        assert box is not None
        assert 0 <= box["x"] < box["x"] + box["width"] <= 390
    assert page.evaluate("document.querySelector('#ranking').parentElement.scrollLeft") == 0
    cut = "[...document.querySelectorAll('#ranking td')].filter(e => e.scrollWidth > e.clientWidth + 1).map(e => e.textContent)"
    assert page.evaluate(cut) == []
    page.get_by_role("button", name="memory").click()
    assert page.locator("th[aria-sort=ascending]").count() == 1


def test_hostile_names_do_nothing_but_show(show: Show) -> None:
    page = show(plans.hostile()).page
    for point in page.locator("#chart-costs .barlayer .point:visible").all():
        point.hover(force=True)
    page.get_by_label("Filter").fill("<script>")
    assert page.evaluate("window.hurt") is None
    assert page.locator("img").count() == 0
    assert "<script>window.hurt=1</script>" in (page.locator("h1").text_content() or "")


def test_hostile_names_of_stages_do_nothing_but_show(show: Show) -> None:
    page = show(pipeline_plans.hostile()).page
    for point in page.locator("#chart-stage-costs .barlayer .point:visible").all():
        point.hover(force=True)
    assert page.evaluate("window.hurt") is None
    assert page.locator("img").count() == 0


PRINTED = {"train": plans.plan(), "serve": plans.service(), "nothing": plans.nothing()} | PIPELINES


@pytest.mark.parametrize("name", PRINTED)
def test_it_prints_on_paper_with_the_charts_inside_the_page(show: Show, name: str, tmp_path: Path) -> None:
    page = show(PRINTED[name]).page
    page.emulate_media(media="print")
    widths = page.evaluate("[...document.querySelectorAll('.plot .main-svg')].map(e => e.getBoundingClientRect().width)")
    assert all(width <= 703 for width in widths)  # A4 less its margins, in CSS pixels
    assert page.locator(".controls:visible").count() == 0
    pages = re.findall(rb"/Type\s*/Page\b", page.pdf(path=tmp_path / "report.pdf", prefer_css_page_size=True))
    assert 1 <= len(pages) <= 8
