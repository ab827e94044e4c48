"""Views of a report: what the address keeps, how one gets back, and what is on paper."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest

from tests.browser.browser import Browser, Page
from tests.browser.test_report import GPT, Write, event, panes, table_cells

# The first head that sorts, and the first filter, as far as a person can see them.
SORT = "[...document.querySelectorAll('.pane.shown thead button')].find((one) => one.offsetParent)"
FIELD = (
    "[...document.querySelectorAll('.pane.shown .tools.small input')]"
    ".find((one) => one.offsetParent)"
)
SORTED = (
    "[...document.querySelectorAll('.pane.shown th[aria-sort=ascending]')]"
    ".filter((one) => one.offsetParent).map((one) => one.textContent)"
)
NOTE = "document.getElementById('note')?.textContent || ''"


@pytest.fixture
def page(browser: Browser, write_page: Write) -> Iterator[Page]:
    page = browser.open(write_page(GPT))
    yield page
    page.close()


@pytest.mark.parametrize("pane", ["overview", "step", "flames", "code", "kernels", "about"])
def test_the_address_keeps_filters_and_orders(browser: Browser, page: Page, pane: str) -> None:
    page.go(f"#{pane}")
    page.run(f"{SORT}.click()")
    has_filter = page.run(f"Boolean({FIELD})")
    if has_filter:
        page.run(
            f"(() => {{ const field = {FIELD}; field.value = 'a';"
            " field.dispatchEvent(new Event('input', { bubbles: true })); })()"
        )
    page.settle()
    again = browser.open(page.path, page.run("location.hash"))
    again.settle()
    assert len(again.run(SORTED)) == 1
    if has_filter:
        # The first table that has a filter need not be the first one that sorts.
        fields = "[...document.querySelectorAll('.pane.shown .tools.small input')]"
        assert "a" in again.run(f"{fields}.map((one) => one.value)")
    again.close()


def test_an_order_stays_with_its_pane_however_fast_one_leaves(page: Page) -> None:
    page.go("#kernels")
    page.run(f"{SORT}.click(); document.querySelector('nav a[href=\"#code\"]').click()")
    time.sleep(0.3)
    assert page.run("location.hash") == "#code"
    page.run("history.back()")
    page.settle()
    assert page.run("location.hash") == "#kernels?kernels.sort=Kernel.up"
    assert len(page.run(SORTED)) == 1
    # An address that is typed in leaves no time to write the order anywhere.
    page.run(f"{SORT}.click(); location.hash = '#code'")
    time.sleep(0.3)
    assert page.run("location.hash") == "#code"


def test_back_returns_to_the_same_place(page: Page) -> None:
    page.go("#operators")
    page.run("scrollTo(0, 500)")
    page.settle()
    page.go("#about")
    assert page.run("scrollY") == 0
    page.run("history.back()")
    page.settle()
    assert page.run("[location.hash, scrollY]") == ["#operators", 500]


def test_back_undoes_zoom_grouping_and_pages(page: Page) -> None:
    page.go("#flames")
    page.run("document.getElementById('flame-graph').focus()")
    page.press("ArrowDown")
    page.press("Enter")
    page.settle()
    assert "node=" in page.run("location.hash")
    page.run("history.back()")
    page.settle()
    assert page.run("location.hash") == "#flames"
    page.go("#operators")
    page.click("#operators [aria-label='Next page']")
    page.settle()
    assert page.run("location.hash") == "#operators?page=2"
    first = table_cells(page, "[data-table=operators]")[0][0]
    page.run("document.querySelector('#operators tbody a').click()")
    page.settle()
    page.run("history.back()")
    page.settle()
    assert table_cells(page, "[data-table=operators]")[0][0] == first
    page.click("[data-shows=operators-shape]")
    page.settle()
    assert page.run("location.hash") == "#operators?by=operators-shape"
    page.run("history.back()")
    page.settle()
    assert page.run("location.hash") == "#operators?page=2"
    page.run("history.back()")
    page.settle()
    assert page.run("location.hash") == "#operators"


def test_a_grouped_row_leads_to_its_group(page: Page) -> None:
    page.go("#operators?by=operators-shape")
    rows = "document.querySelector('[data-table=operators-shape] tbody tr')"
    page.run(f"{rows}.querySelector('a').click()")
    page.settle()
    text = page.run("document.getElementById('detail-body').textContent")
    tile = page.run("document.querySelector('#detail-body .tiles b').textContent")
    assert f"These are the {tile} call" in text
    page.run("document.querySelector('#detail-body p a').click()")
    page.settle()
    assert "These are" not in page.run("document.getElementById('detail-body').textContent")


def test_a_filter_without_a_hit_is_told_and_cleared(page: Page) -> None:
    page.go("#operators?filter=nosuchname")
    holder = "document.querySelector('[data-table=operators]')"
    assert "Nothing matches \u201cnosuchname\u201d." in page.run(f"{holder}.textContent")
    page.click("[data-table=operators] .none button")
    page.settle()
    assert page.run("location.hash") == "#operators"
    assert len(table_cells(page, "[data-table=operators]")) > 10


def test_no_number_is_cut_in_a_narrow_window(browser: Browser, write_page: Write) -> None:
    page = browser.open(write_page(GPT), "#code", width=360)
    cut = """[...document.querySelectorAll('.pane.shown .wide')].filter((holder) => {
      const edge = holder.getBoundingClientRect().left + holder.clientWidth;
      return [...holder.querySelectorAll('thead th')].some((head) => {
        const { left, right } = head.getBoundingClientRect();
        return left < edge - 2 && right > edge + 2;
      });
    }).length"""
    for pane in ("code", "flames", "operators"):
        page.go(f"#{pane}")
        assert page.run(cut) == 0, pane
    page.close()


def test_a_detail_says_where_it_belongs_and_leads_back(browser: Browser, page: Page) -> None:
    page.go("#operators")
    page.run("scrollTo(0, 300)")
    page.settle()
    page.run("document.querySelector('#operators tbody a').click()")
    page.settle()
    current = "document.querySelector('nav [aria-current=true]').textContent"
    assert page.run(current) == "Operators"
    assert page.run("scrollY") == 0
    page.click("#detail-origin a")
    assert page.run("[location.hash, scrollY]") == ["#operators", 300]
    # Opened by its address, it belongs to the pane that lists things of its kind.
    other = browser.open(page.path, "#detail?kind=finding&name=0")
    assert other.run(current) == "Overview"
    assert other.run("document.querySelector('#detail-origin a').hash") == "#overview"
    other.close()


def test_a_wrong_address_is_told(page: Page) -> None:
    page.go("#nothing")
    assert page.run(NOTE) == "There is no view named nothing. This is the overview."
    assert page.run("document.querySelector('.pane.shown').id") == "overview"
    page.go("#step?step=99")
    assert page.run(NOTE) == "There is no step 99. This is the whole recording."
    page.go("#code")
    assert page.run(NOTE) == ""


def test_one_press_finds_a_field_to_search_in(page: Page) -> None:
    page.go("#overview")
    page.press("/")
    assert page.run("[location.hash.slice(0, 5), document.activeElement.id]") == ["#step", "find"]
    page.go("#operators?by=operators-shape")
    page.press("/")
    assert page.run(f"document.activeElement === {FIELD}")


def test_a_function_has_the_numbers_of_its_table(page: Page) -> None:
    page.go("#code")
    row = table_cells(page, "#code [data-table=functions]")[0]
    page.run("document.querySelector('#code [data-table=functions] tbody a').click()")
    page.settle()
    cost = table_cells(page, "#detail-body")[0]
    # Columns that say nothing about this function are left out.
    assert cost == [cell for cell in row if cell in cost]
    assert cost[:4] == row[:4]
    assert page.run("document.querySelector('#detail-body h1').textContent") == row[0]


def test_no_column_is_cut_in_an_ordinary_window(browser: Browser, write_page: Write) -> None:
    page = browser.open(write_page(GPT), width=1280)
    for pane in panes(page):
        page.go(pane)
        wide = page.run(
            "[...document.querySelectorAll('.pane.shown .wide')]"
            ".filter((one) => one.scrollWidth > one.clientWidth)"
            ".map((one) => one.getAttribute('data-table'))"
        )
        assert wide == [], pane
    page.close()


def test_paper_has_the_pictures_and_says_which_rows_it_has(
    browser: Browser, write_page: Write
) -> None:
    page = browser.open(write_page(GPT), "#operators", dark=True)
    page.call("Emulation.setEmulatedMedia", media="print")
    printed = (
        "[...document.querySelectorAll('#operators .printed')].find((one) => one.offsetParent)"
    )
    rows = page.run("document.querySelector('#operators [role=status]').textContent").split()[0]
    assert page.run(f"{printed}.textContent") == f"Rows 1 to 50 of {rows}."
    for pane in ("step", "flames"):
        page.go(f"#{pane}")
        page.run("dispatchEvent(new Event('beforeprint'))")
        assert page.box(f"#{pane} canvas")["height"] > 100
        corner = (
            f"document.querySelector('#{pane} canvas').getContext('2d').getImageData(3, 3, 1, 1)"
        )
        assert page.run(f"Math.min(...{corner}.data)") > 200, "paper is light"
        page.run("dispatchEvent(new Event('afterprint'))")
    page.close()


def test_without_scripts_no_link_leads_nowhere(browser: Browser, write_page: Write) -> None:
    page = browser.open(write_page(GPT), scripts=False)
    document = page.call("DOM.getDocument", depth=0)["root"]["nodeId"]
    links = page.call("DOM.querySelectorAll", nodeId=document, selector="a[href]")["nodeIds"]
    assert len(links) > 5
    for link in links:
        flat = page.call("DOM.getAttributes", nodeId=link)["attributes"]
        address = dict(zip(flat[::2], flat[1::2], strict=True))["href"]
        found = page.call("DOM.querySelector", nodeId=document, selector=address)
        assert found["nodeId"], address
    page.close()


def test_names_that_say_nothing_or_too_much_can_be_read(
    browser: Browser, write_page: Write
) -> None:
    long = "aten::" + "x" * 40
    events = [event("", 0, 50), event(long, 60, 20), event("aten::mm", 90, 10, pid=2)]
    page = browser.open(write_page(events, name="names"), "#operators")
    cells = page.run(
        "[...document.querySelectorAll('#operators [data-table=operators] tbody a')]"
        ".map((one) => [one.textContent, one.title])"
    )
    assert "(no name)" in [text for text, _ in cells]
    assert [long, long] in cells
    page.go("#step?event=0")
    card = "document.querySelector('#selection .card').innerText"
    cards = []
    for at in range(3):
        page.go(f"#step?event={at}")
        cards.append(page.run(card))
    assert sum("(no name)" in text for text in cards) == 1
    assert sum("process 1, " in text for text in cards) == 2
    assert sum("process 2, " in text for text in cards) == 1
    page.close()


def test_a_device_that_runs_behind_shows_the_work_of_a_step(
    browser: Browser, write_page: Write
) -> None:
    events, stream = [], {"pid": 0, "tid": 7}
    for step in range(4):
        begin, link = step * 1000, {"correlation": step + 1}
        work = {**link, "External id": step + 1, "device": 0, "stream": 7}
        events += [
            event(f"ProfilerStep#{step}", begin, 900, cat="user_annotation"),
            event("aten::mm", begin + 10, 50, args={"External id": step + 1}),
            event("cudaLaunchKernel", begin + 20, 10, cat="cuda_runtime", args=link),
            event(f"gemm_{step % 2}", 2000 + step * 5000, 5000, cat="kernel", **stream, args=work),
        ]
    page = browser.open(write_page(events, name="behind"), "#step?step=3")
    page.settle()
    note = page.run("document.querySelector('#selection p').textContent")
    assert note.startswith("The device runs behind the CPU: it works on step 3 for 5.00 ms")
    # All steps take the same time on the device, with another kernel.
    rows = {row[0]: row[2:] for row in table_cells(page, "#selection")}
    assert not any(name.startswith("ProfilerStep") for name in rows)
    page.click("#selection p button")
    assert "at=17000000-22000000" in page.run("location.hash")
    assert page.problems() == []
    page.close()
