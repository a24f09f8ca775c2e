"""What notebooks show: tables that hold the numbers, escaped, in the colours of the page."""

import re
from html.parser import HTMLParser
from typing import Any

import numpy as np
import pytest

import sketchbandit as sb
from sketchbandit.html_repr import card, grid, sentence


class Cells(HTMLParser):
    """The texts of an HTML fragment, and whether every tag is closed in order."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.texts: list[str] = []
        self.tags: list[str] = []
        self.attributes: set[str] = set()
        self.feed(text)
        self.close()
        assert not self.tags, "a tag is left open"

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        """Remember it."""
        self.tags.append(tag)
        self.attributes |= {f"{name}={value}" for name, value in attrs}

    def handle_endtag(self, tag: str) -> None:
        """It is the last one that was opened."""
        assert self.tags.pop() == tag

    def handle_data(self, data: str) -> None:
        """A text."""
        self.texts.append(data)


def shown(thing: Any) -> dict[str, str]:
    """The facts of a card."""
    title, *texts = Cells(thing._repr_html_()).texts
    assert title == type(thing).__name__
    return dict(zip(texts[::2], texts[1::2], strict=True))


def played(policy: Any, rounds: int = 60) -> Any:
    """The policy after some rounds."""
    random = np.random.default_rng(0)
    for _ in range(rounds):
        arms = random.standard_normal((4, policy.dim))
        policy.update(arms[policy.select(arms)], reward=random.standard_normal())
    return policy


@pytest.mark.parametrize(
    "make",
    [
        lambda: sb.adaptive(30),
        lambda: sb.adaptive(200, epsilon=4.0, scaling="rows"),
        lambda: sb.oful(5, explore=sb.Thompson(seed=1)),
        lambda: sb.soful(30, size=4),
        lambda: sb.cbrap(30, size=6),
        lambda: sb.dbslinucb(30, size=4, epsilon=2.0),
    ],
)
@pytest.mark.parametrize("rounds", [0, 60])
@pytest.mark.filterwarnings("ignore::sketchbandit.SketchTooSmallWarning")
def test_a_policy_shows_what_it_is_and_how_it_does(make: Any, rounds: int) -> None:
    """Sketch, features, rounds, memory, certificate and the sentence about its health."""
    policy = played(make(), rounds)
    found, health = shown(policy), policy.health()
    assert type(policy.sketch).__name__ in found["sketch"]
    assert found["features"] == str(policy.dim)
    assert found["rounds"] == str(rounds)
    assert found["explores by"] == repr(policy.explore)
    assert found["health"] == health.sentence
    assert re.fullmatch(r"[\d.]+ (bytes|kB|MB)", found["memory"])
    is_certified = np.isfinite(health.certificate)
    assert found["certificate"] == (f"error at most {health.certificate:.4g}" if is_certified else "none")


def test_a_sketch_shows_its_rows_and_its_error() -> None:
    """With the settings that it was made with."""
    sketch = sb.FrequentDirections(30, size=4)
    sketch.update(np.random.default_rng(0).standard_normal((1500, 30)))
    found = shown(sketch)
    assert found["rows seen"] == "1,500"
    assert found["rows kept"] == str(len(sketch.rows))
    assert found["certificate"] == f"error at most {sketch.error_bound:.4g}"
    assert "size=4" in found["settings"]
    exact = sb.ExactSketch(3)
    exact.update(np.ones((20, 3)))
    assert shown(exact)["rows kept"] == "S'S, a full matrix"


def test_names_of_actions_are_escaped() -> None:
    """They may come from users."""
    name = "<script>alert('x')</script> & \"more\""
    models = sb.PerAction([name, "plain"], lambda: sb.oful(3))
    models.update(np.ones(3), name, reward=1.0)
    html = models._repr_html_()
    assert "<script" not in html
    found = shown(models)
    assert found[name].startswith("1 rounds")
    assert found["plain"].startswith("0 rounds")
    assert found["actions"] == "2"
    many = sb.PerAction([f"a{i}" for i in range(50)], lambda: sb.oful(2))
    assert shown(many)["..."] == "30 more actions"


def test_catalogues_and_offers() -> None:
    """How many arms, how long, what they take."""
    arms = sb.Catalogue(np.ones((1200, 7), dtype=np.float32))
    found = shown(arms)
    assert (found["arms"], found["features"], found["dtype"]) == ("1,200", "7", "float32")
    assert "kB" in found["memory"]
    assert shown(arms.outer(np.ones(3))) == {
        "arms": "1,200",
        "features": "21",
        "interaction": "outer with a context",
    }


def test_an_evaluation_shows_its_tables() -> None:
    """Values, differences, coverage; and why nothing can be said of a candidate."""
    random = np.random.default_rng(0)
    log = sb.evaluation.Log(
        arms=random.standard_normal((400, 5, 3)),
        chosen=random.integers(0, 5, 400),
        probability=np.full(400, 0.2),
        reward=random.random(400),
    )
    found = sb.evaluation.evaluate(log, {"<b>greedy</b>": sb.oful(3, explore=sb.Greedy())}, methods=("ips",))
    html = found._repr_html_()
    assert "<b>" not in html
    texts = Cells(html).texts
    assert texts.count("<b>greedy</b>") >= 3
    for title, header, rows in found.tables():
        assert title in texts
        assert set(header) <= set(texts)
        assert {cell for row in rows for cell in row if cell} <= set(texts)


def test_nothing_has_a_colour_of_its_own() -> None:
    """Pages are light or dark."""
    html = card("a", [("b", "c")]) + grid("a", ["b"], [["c"]]) + sentence("d")
    assert Cells(html).attributes == {"style=text-align: left; vertical-align: top"}
    assert "color" not in html
