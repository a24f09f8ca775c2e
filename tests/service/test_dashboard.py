"""The dashboard in headless Chromium: it renders, updates, escapes, fits a phone, and asks for a token."""

import shutil
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote

import httpx
import numpy as np
import pytest
from playwright.sync_api import Browser, Error, expect, sync_playwright

from sketchbandit_service import tokens
from sketchbandit_service.client import Client
from tests.service.harness import PLAIN
from tests.service.processes import ServerProcess, Zygote, free_port

DIM = 5
EVIL = "<script>document.title='owned'<img src=x onerror=\"document.title='owned'\">"


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """Chromium: the machine's, or playwright's own."""
    found = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    with sync_playwright() as playwright:
        try:
            started = playwright.chromium.launch(executable_path=found, args=["--no-sandbox"])
        except Error as error:
            pytest.skip(f"no Chromium can be started: {error.message.splitlines()[0]}")
        yield started
        started.close()


@pytest.fixture
def server(tmp_path: Path, forge: Zygote) -> Iterator[ServerProcess]:
    """A server with an evil bandit and a good one."""
    found = forge.start(tmp_path / "state", free_port())
    httpx.put(f"{found.url}/v1/bandits/{quote(EVIL, safe='')}", json={"dim": DIM}).raise_for_status()
    good = {"dim": 40, "parameters": {"size": 4, "epsilon": 4.0}, "explore": "ucb"}
    httpx.put(f"{found.url}/v1/bandits/good", json=good).raise_for_status()
    yield found
    found.stop()


def play(url: str, name: str, rounds: int, dim: int) -> None:
    """Some decisions, with stored arms of evil names among them."""
    random = np.random.default_rng(0)
    with Client(url) as client:
        bandit = client.bandit(name)
        for _ in range(rounds):
            arms = random.standard_normal((3, dim))
            decision = bandit.select(arms)
            bandit.update(decision, float(random.random()))
        bandit.put_arms({EVIL[:100]: [1.0] * dim})
        bandit.select([EVIL[:100]])


def test_it_renders_and_updates(server: ServerProcess, browser: Browser) -> None:
    """Figures appear and change without a reload; the last decisions are listed; nothing fails."""
    page = browser.new_page()
    failures: list[str] = []
    page.on("pageerror", lambda error: failures.append(str(error)))
    page.on("console", lambda message: failures.append(message.text) if message.type == "error" else None)
    page.goto(f"{server.url}/#good")
    expect(page.locator("#connection")).to_have_text("live")
    expect(page.locator("#name")).to_have_text("good")
    expect(page.locator("#rate")).to_have_text("no rewards yet")
    play(server.url, "good", 60, 40)
    expect(page.locator("#decisions")).to_have_text("61")
    expect(page.locator("#rewards")).to_have_text("60")
    expect(page.locator("#open")).to_have_text("1")
    expect(page.locator("#health")).to_contain_text("The spectral error is 0 so far and never exceeds")
    expect(page.locator("#budget-text")).to_contain_text("Its budget now is")
    expect(page.locator("#recent tr")).to_have_count(20)
    expect(page.locator("#recent tr").first).to_contain_text("open")
    expect(page.locator("#rate-chart .dot")).to_have_count(1)
    assert float(page.locator("#rate").inner_text()) == pytest.approx(0.5, abs=0.3)
    page.wait_for_timeout(2200)
    play(server.url, "good", 40, 40)
    expect(page.locator("#decisions")).to_have_text("102")
    expect(page.locator("#rate-summary")).to_contain_text("From ")
    expect(page.locator("#scaling")).to_contain_text("Scaling of the features: auto, warming up: 102 of")
    expect(page.locator("#scaling")).to_contain_text("Rewards are learned less their mean, 0")
    expect(page.locator("#width-summary")).to_contain_text("Mean width")
    expect(page.locator("#comparison-note")).to_contain_text("Some arms are never drawn")
    assert failures == []
    page.close()


def test_the_curve_ends_where_only_defaults_arrive(server: ServerProcess, browser: Browser) -> None:
    """Nobody asks any more, and decisions of before expire: that is no mean of 0."""
    play(server.url, "good", 2, 40)
    stats = httpx.get(f"{server.url}/v1/bandits/good/stats").json()
    quiet, busy = [0] * 60, [10] * 60
    stats["history"] = {
        "start": stats["now"] - 120.0,
        "width": 1.0,
        "decisions": busy + quiet,
        "rewards": [5] * 60 + [5] * 60,
        "defaults": [1] * 60 + [5] * 60,
        "reward_sum": [4.0] * 60 + [0.0] * 60,
        "width_sum": busy + quiet,
    }
    page = browser.new_page()
    page.route("**/v1/bandits/good/stats*", lambda route: route.fulfill(json=stats))
    page.goto(f"{server.url}/#good")
    expect(page.locator("#rate-summary")).to_contain_text("From 0.8 at the beginning to 0.8 at the end.")
    last = page.locator("#curve tr").last
    expect(last.locator("td").nth(2)).to_have_text("50")
    expect(last.locator("td").nth(3)).to_have_text("\N{EN DASH}")
    expect(page.locator("#rate")).to_have_text("0.4")  # of all rewards of the range
    page.close()


def test_candidates_are_shown(server: ServerProcess, browser: Browser) -> None:
    """What they would have earned beside what was earned, with intervals; their names are text."""
    name = EVIL[:40].replace("/", "")
    with Client(server.url) as client:
        shop = client.create("judged", 3, **PLAIN, exploration=0.5, reward_timeout=None)
        shop.put_candidate(name, policy="oful", explore="greedy")
        for _ in range(30):
            shop.update(shop.select(np.eye(3)), 0.5)
    page = browser.new_page()
    page.goto(f"{server.url}/#good")
    expect(page.locator("#candidates-section")).to_be_hidden()
    page.goto(f"{server.url}/#judged")
    shown = page.locator("#candidates tr")
    expect(shown).to_have_count(1)
    expect(shown).to_contain_text(name)
    expect(shown).to_contain_text("oful, greedy")
    expect(shown).to_contain_text("0.5 (")
    expect(shown).to_contain_text("30 decisions decide nothing")
    assert "owned" not in page.title()
    page.close()


def test_what_a_shop_asks(server: ServerProcess, browser: Browser) -> None:
    """Reward against the uniform choice with its interval, shares of arms, over the time that is chosen."""
    with Client(server.url) as client:
        shop = client.create("shop", 3, **PLAIN, exploration=0.5, slates=True, reward_timeout=None)
        shop.put_arms({"good": [1.0, 0.0, 0.0], "bad": [0.0, 1.0, 0.0], EVIL[:100]: [0.0, 0.0, 1.0]})
        for _ in range(200):
            decision = shop.select(top=2)
            rewards = {"good": 1.0, "bad": 0.1}
            shop.update(decision, {a["arm"]: rewards.get(a["arm"], 0.4) for a in decision.top})
    page = browser.new_page()
    page.goto(f"{server.url}/#shop")
    expect(page.locator("#decisions")).to_have_text("200")
    expect(page.locator("#rewards")).to_have_text("400")
    low, _, high, *_ = page.locator("#interval").inner_text().split()
    middle, width = (float(low) + float(high)) / 2, float(high) - float(low)
    assert abs(middle - 0.5) < 1.5 * width  # six standard errors from the truth: the server is not seeded
    assert float(page.locator("#gain").inner_text()) > 0.0
    expect(page.locator("#gain-text")).to_have_text("outside the interval")
    expect(page.locator("#comparison-note")).to_contain_text("Estimated from 200 rewards")
    expect(page.locator("#comparison-note")).to_contain_text("whether a reward is sent")
    expect(page.locator("#rate-chart .uniform")).to_have_count(1)
    expect(page.locator("#shares tr")).to_have_count(3)
    expect(page.locator("#shares tr").first).to_contain_text("good")
    expect(page.locator("#shares")).to_contain_text(EVIL[:100])
    expect(page.locator("#recent tr").first).to_contain_text("(place 2)")
    for name in ("the last hour", "the last week"):
        page.get_by_label("Time range", exact=True).select_option(label=name)
        expect(page.locator("#decisions")).to_have_text("200")
    sketch, recent = (page.locator(part).bounding_box() for part in ("#sketch", "#recent"))
    assert sketch is not None
    assert recent is not None
    assert sketch["y"] > recent["y"]
    page.close()


def test_names_are_text(server: ServerProcess, browser: Browser) -> None:
    """A bandit and an arm called <script> are shown as such, and run nothing."""
    play(server.url, EVIL, 3, DIM)
    page = browser.new_page()
    page.goto(server.url)
    expect(page.locator("#name")).to_have_text(EVIL)
    expect(page.locator("#bandits a").first).to_have_text(EVIL)
    expect(page.locator("#recent tr").first).to_contain_text(EVIL[:100])
    assert page.title() == "sketchbandit"
    assert page.locator("article script, article img, nav script, nav img").count() == 0
    page.close()


def test_keyboard_screen_reader_and_phone(server: ServerProcess, browser: Browser) -> None:
    """Reached by Tab, named for screen readers, no sideways scrolling at 360 pixels, light and dark."""
    play(server.url, "good", 10, 40)
    page = browser.new_page(viewport={"width": 360, "height": 740}, color_scheme="dark")
    page.goto(server.url)
    expect(page.locator("#name")).to_have_text(EVIL)
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.className") == "skip"
    page.keyboard.press("Enter")
    assert page.evaluate("document.activeElement.id") == "content"
    assert "#" not in page.url
    page.reload()
    expect(page.locator("#name")).to_have_text(EVIL)
    page.keyboard.press("Tab")
    for _ in range(2):
        page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.textContent") == "good"
    page.keyboard.press("Enter")
    expect(page.locator("#name")).to_have_text("good")
    expect(page.locator("#bandits a[aria-current=true]")).to_have_text("good")
    assert page.evaluate("document.documentElement.scrollWidth") <= 360
    tree = page.locator("body").aria_snapshot()
    for name in ('img "Mean reward over time', 'navigation "Bandits"', "status: live", "meter"):
        assert name in tree, tree
    dark = page.evaluate("getComputedStyle(document.body).backgroundColor")
    page.emulate_media(color_scheme="light")
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") != dark
    page.close()


def test_a_lost_connection_is_told(server: ServerProcess, browser: Browser) -> None:
    """And when the service has gone, the page says so and keeps what it has."""
    page = browser.new_page()
    page.goto(f"{server.url}/#%")  # no name at all
    expect(page.locator("#connection")).to_have_text("live")
    server.stop()
    expect(page.locator("#connection")).to_have_text("connection lost; trying again")
    page.close()


def test_what_is_out_of_service_is_told(server: ServerProcess, browser: Browser) -> None:
    """With its reason, as text; the others are shown as ever."""
    listed = httpx.get(f"{server.url}/v1/bandits").json()
    listed["quarantined"] = [{"name": EVIL, "reason": "record 7 could not be applied"}]
    page = browser.new_page()
    page.route("**/v1/bandits", lambda route: route.fulfill(json=listed))
    page.goto(f"{server.url}/#good")
    expect(page.locator("#quarantined")).to_have_text(
        f"{EVIL} is out of service: record 7 could not be applied"
    )
    expect(page.locator("#connection")).to_have_text("live")
    assert page.title() == "sketchbandit"
    for number in (2, 3):  # what stays is not said again
        listed["quarantined"] = [{"name": f"b{one}", "reason": "why"} for one in range(number)]
        expect(page.locator("#quarantined p")).to_have_count(number)
        page.evaluate("document.querySelector('#quarantined p').isOld = true")
        for _ in range(2):
            with page.expect_response("**/v1/bandits"), page.expect_response("**/stats*"):
                pass
        assert page.evaluate("document.querySelector('#quarantined p').isOld")
    listed["quarantined"] = []
    expect(page.locator("#quarantined")).to_be_hidden()
    page.get_by_role("link", name="The API").click()
    expect(page.locator("h1")).to_contain_text("API of the sketchbandit decision service")
    assert page.evaluate("getComputedStyle(document.querySelector('table')).borderCollapse") == "collapse"
    page.close()


def test_a_token_is_asked_for(tmp_path: Path, forge: Zygote, browser: Browser) -> None:
    """Without one nothing is shown; with one the page works; no bandits is said in words."""
    secret = tokens.add(tmp_path / "tokens", "page", "read")
    port = free_port()
    server = forge.start(tmp_path / "guarded", port, tokens=tmp_path / "tokens")
    page = browser.new_page()
    page.goto(server.url)
    expect(page.locator("#token-form")).to_be_visible()
    page.get_by_label("This service needs a token").fill("wrong")
    page.keyboard.press("Enter")
    expect(page.locator("#connection")).to_contain_text("this token is unknown")
    page.get_by_label("This service needs a token").fill(secret)
    page.keyboard.press("Enter")
    expect(page.locator("#empty")).to_be_visible()
    expect(page.locator("#empty")).to_contain_text(f"curl -X PUT {server.url}/v1/bandits/shop")
    expect(page.locator("#token-form")).to_be_hidden()
    page.close()
    server.stop()
