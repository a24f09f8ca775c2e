"""How long a policy earns nothing: the count, the experiment, and who plays in it."""

from collections.abc import Iterator
from itertools import groupby
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import sketchbandit as sb
from sketchbandit.policy.recipes import RECIPES, register
from sketchbandit.simulation import environments, policies, rules, runs
from sketchbandit.simulation.runs import Run, perform
from sketchbandit.simulation.specs import parse, spec
from sketchbandit_paper import plan
from sketchbandit_paper.definitions import EXPERIMENTS, choose
from sketchbandit_paper.definitions.tour import TOUR
from sketchbandit_paper.profiles import PROFILES
from sketchbandit_paper.results import Results
from sketchbandit_paper.store import SCHEMA
from sketchbandit_paper.tables import table

MOTLEY = EXPERIMENTS["starvation-motley"]


class Told(sb.Environment):
    """One arm, and the rewards that it is told."""

    dim, name = 1, "told"

    def __init__(self, rewards: list[float]) -> None:
        self._rewards = rewards

    def rounds(self, count: int) -> Iterator[sb.Round]:
        """Those rewards."""
        for reward in self._rewards[:count]:
            yield sb.Round(np.ones((1, 1)), np.array([reward]), 0.0)


@given(st.lists(st.sampled_from([0.0, 0.0, 1.0, -2.0]), min_size=1, max_size=30))
def test_droughts_are_stretches_of_zeros(rewards: list[float]) -> None:
    """The first counts only if it begins with the first round."""
    stretches = [(paid, len(list(some))) for paid, some in groupby(rewards, key=bool)]
    found = runs.droughts(sb.oful(1), Told(rewards), len(rewards))
    assert found["dry_at_most"] == max([length for paid, length in stretches if not paid], default=0)
    assert found["dry_at_first"] == (0 if stretches[0][0] else stretches[0][1])
    assert found["reward"] == sum(rewards)


def _starve(rule: str, rounds: int, **settings: Any) -> dict[str, Any]:
    contender = spec("oful", ridge=1, explore=rule, scaling="rows", **settings)
    (row,) = perform(
        Run(kind="starve", environment=MOTLEY.environment, contender=contender, rounds=rounds, seed=0)
    )
    return row


def test_chance_ends_what_ucb_never_ends() -> None:
    """The constructed case: UCB earns nothing, Thompson soon does, and a run repeats."""
    ucb = _starve("ucb", 600)
    assert ucb["dry_at_first"] == ucb["dry_at_most"] == ucb["regret"] == 600
    thompson = _starve("thompson", 300)
    assert thompson["dry_at_first"] <= thompson["dry_at_most"] < 200
    assert thompson == _starve("thompson", 300)


def test_the_experiment_is_played_on_stored_features() -> None:
    """Which the policies read as they are, as unit rows, and scaled; every rule with its defaults."""
    stored = environments.build(EXPERIMENTS["starvation-digits"].environment, seed=3)
    assert max(next(iter(drawn.arms)).max() for drawn in stored.rounds(3)) == 16.0
    for experiment in (e for e in EXPERIMENTS.values() if e.kind == "starve"):
        assert len(experiment.series) == 6
        for series in experiment.series:
            read = [policies.reading(member) for member in series.members]
            assert read == ["as stored", "unit rows", "scaling=auto, intercept"]
            for member in series.members:
                policies.check(member)
                assert not plan.needs_tuning(experiment, member)


def test_the_table_counts_runs() -> None:
    """Of every rule and reading: 500 rounds count, 499 do not; at the start, and anywhere."""
    profile = PROFILES["standard"]
    rows = [
        {
            "run": run.key,
            "kind": "starve",
            "seed": run.seed,
            "rounds": run.rounds,
            "round": run.rounds,
            "regret": float(run.seed),
            "dry_at_first": 500 if run.seed < 3 else 499,
            "dry_at_most": 500 if run.seed < 7 else 499,
        }
        for run in plan.final_runs([MOTLEY], profile, {})
    ]
    results = Results(pd.DataFrame(rows, columns=SCHEMA.names), profile, choose([MOTLEY.id]))
    header, lines = table(results, MOTLEY.id)
    assert len(lines) == 18
    assert {len(line) for line in lines} == {len(header)}
    assert {tuple(line[2:]) for line in lines} == {("3 of 20", "7 of 20", "500", "9.5", "19.0")}


# -- policies whose defaults differ -------------------------------------------------------------------------


def test_named_experiments_say_how_the_adaptive_sketch_plays() -> None:
    """Reading and rule, so that they stay whatever its defaults become; the tour shows the defaults."""
    named = [e for e in EXPERIMENTS.values() if e.id not in TOUR]
    members = {m for e in named for s in e.series for m in s.members if m.name == "adaptive"}
    assert len(members) > 50
    for member in members - {m for s in EXPERIMENTS["matrix-approximation"].series for m in s.members}:
        assert {"scaling", "intercept", "explore"} <= dict(member.settings).keys(), str(member)


def test_words_of_a_spec() -> None:
    """None, true and false can be typed, and come back."""
    typed = parse("adaptive:scaling=none,intercept=False,explore=ucb")
    assert typed == spec("adaptive", scaling=None, intercept=False, explore="ucb") == parse(str(typed))
    assert parse("adaptive:intercept=true").get("intercept") is True
    assert policies.label(typed) == "Adaptive, intercept = False, scaling = None, UCB"


@pytest.fixture
def drawing() -> Iterator[str]:
    """The name of a policy that draws by default, as strongly as its rewards say."""

    def make(dim: int, *, ridge: float = 1.0, explore: sb.Explore | None = None) -> sb.LinUCB:
        return sb.oful(dim, ridge=ridge, explore=explore or sb.Thompson("auto"))

    register("drawing", make, title="Drawing", can_turn_exact=True)
    yield "drawing"
    del RECIPES["drawing"]


def test_a_rule_by_default_is_seeded_and_tuned(drawing: str) -> None:
    """As one that is named: a run repeats, and its own number is what is searched."""
    run = Run(
        kind="play",
        environment=spec("gaussian", dim=4, arms=5),
        contender=spec(drawing, ridge=1),
        rounds=40,
        seed=2,
    )
    first, again = ([{**row, "seconds": 0.0} for row in perform(run)] for _ in range(2))
    assert first == again
    assert first[0]["number"] is None
    assert rules.number_of(spec(drawing)) == rules.NUMBERS["thompson"]
    own = policies.build(spec("adaptive"), 4, seed=2).explore
    assert (own.scale, own.seed) == ("auto", 500_000_002), "not the seed that arms are drawn from"
    assert policies.build(parse("adaptive:explore=thompson,explore.seed=7"), 4, seed=2).explore.seed == 7
    tuned = policies.build(policies.tuned(spec(drawing), 2.0, 0.3), 4, seed=0)
    assert (tuned.ridge, tuned.explore.scale) == (2.0, 0.3)
