"""The claims: each verdict follows its rule, on results made up for the purpose."""

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest

from sketchbandit.simulation import policies
from sketchbandit.simulation.specs import Spec, spec
from sketchbandit_paper import plan
from sketchbandit_paper.claims import CLAIMS, NOT, OPEN, OURS, PARTLY, REPRODUCED
from sketchbandit_paper.claims.fronts import compare
from sketchbandit_paper.definitions import EXPERIMENTS, choose
from sketchbandit_paper.definitions.contenders import DBS_FD, DBS_RFD
from sketchbandit_paper.profiles import Profile
from sketchbandit_paper.results import Results, estimate
from sketchbandit_paper.store import SCHEMA
from sketchbandit_paper.tables import table

FULL = Profile(
    name="made up",
    rounds=1.0,
    permutations=3,
    tuning_permutations=1,
    tuning_rounds=0.5,
    betas=(0.1,),
    ridges=(1.0,),
)
BY_ID = {claim.id: claim for claim in (*CLAIMS, *OURS)}

Made = dict[str, Any]
Make = Callable[[Spec, int, float], Made]


def results(ids: Iterable[str], make: Make, profile: Profile = FULL) -> Results:
    """Rows for every run of these experiments: ``make(contender, seed, share of the run)`` fills them."""
    experiments = choose(list(ids))
    chosen = {
        (
            str(plan.environment_of(e, profile)),
            str(plan.stand_in(m, profile)),
            plan.tuning_rounds_of(e, profile),
        ): plan.Tuned(ridge=1.0, number=0.1, regret=0.0)
        for e in experiments
        for m in plan.members_of(e, profile)
        if plan.needs_tuning(e, m)
    }
    rows: list[Made] = []
    for environment, contender, rounds in chosen:
        rows.append(
            {
                "run": f"{environment} {contender}",
                "kind": "tune",
                "environment": environment,
                "contender": contender,
                "rounds": rounds,
                "round": rounds,
                "ridge": 1.0,
                "number": 0.1,
                "regret": 0.0,
            }
        )
    for run in plan.final_runs(experiments, profile, chosen):
        for point in range(1, run.points + 1):
            share = point / run.points
            bare = run.contender if run.kind == "approximate" else policies.untuned(run.contender)
            rows.append(
                {
                    "run": run.key,
                    "kind": run.kind,
                    "environment": str(run.environment),
                    "contender": str(bare),
                    "seed": run.seed,
                    "rounds": run.rounds,
                    "round": round(run.rounds * share),
                    "ridge": 1.0,
                    "number": 0.1,
                    "certificate": 1.0,
                    "seconds": 1.0,
                    "peak_bytes": 1000,
                    "sketch_size": 10,
                    "sketch_rows": 10,
                    "warned": False,
                    **make(bare, run.seed, share),
                }
            )
    frame = pd.DataFrame(rows, columns=SCHEMA.names)
    return Results(frame, profile, experiments)


def verdict(name: str, make: Make) -> str:
    """What a claim says to made-up results."""
    claim = BY_ID[name]
    found = claim.finding(results(claim.needs, make))
    assert found.verdict != OPEN, found.ours
    return found.verdict


def test_the_list_is_whole() -> None:
    """Every experiment of the paper is judged by some claim; ids are unique; rules and places are given."""
    assert len(CLAIMS) + len(OURS) == len(BY_ID) >= 15
    of_the_paper = {e.id for e in EXPERIMENTS.values() if e.paper != "ours"}
    assert {needed for claim in CLAIMS for needed in claim.needs} == of_the_paper
    for claim in BY_ID.values():
        assert claim.statement
        assert claim.where
        assert claim.rule


def test_without_results_nothing_is_claimed() -> None:
    """A claim whose experiments were not run has no verdict."""
    empty = Results(pd.DataFrame([], columns=SCHEMA.names), FULL, choose(["all"]))
    assert {claim.finding(empty).verdict for claim in (*CLAIMS, *OURS)} == {OPEN}


@pytest.mark.parametrize("method", ["soful", "cbscfd"])
@pytest.mark.parametrize(("exponent", "expected"), [(1.0, REPRODUCED), (0.8, PARTLY), (0.62, NOT)])
def test_near_linear(method: str, exponent: float, expected: str) -> None:
    """The exponent over the second half of the run, beside OFUL's 0.6."""

    def make(contender: Spec, _: int, share: float) -> Made:
        here = exponent if contender == spec(method, size=50) else 0.6
        return {"regret": 100.0 * share**here}

    assert verdict(f"{method}-50-near-linear", make) == expected
    assert verdict(f"{method}-50-near-linear", lambda _c, _s, share: {"regret": share}) == NOT, "as OFUL"


@pytest.mark.parametrize(("factor", "expected"), [(1.05, REPRODUCED), (1.2, PARTLY), (1.5, NOT)])
def test_comparable(factor: float, expected: str) -> None:
    """Ratios to OFUL's regret."""

    def make(contender: Spec, _: int, share: float) -> Made:
        return {"regret": 100.0 * share * (1.0 if contender.name == "oful" else factor)}

    for name in ("soful-450-like-oful", "cbscfd-450-like-oful", "mnist-like-oful"):
        assert verdict(name, make) == expected


@pytest.mark.parametrize(
    ("small", "large", "expected"), [(120.0, 110.0, REPRODUCED), (120.0, 90.0, PARTLY), (80.0, 90.0, NOT)]
)
def test_outperforms_with_confidence(small: float, large: float, expected: str) -> None:
    """Paired over permutations: a common swing of the permutation does not hide a difference."""

    def make(contender: Spec, seed: int, share: float) -> Made:
        level = {50: small, 450: large}.get(contender.get("size"), 100.0)
        if contender in (DBS_FD, DBS_RFD):
            level = 100.0
        return {"regret": share * (level + 500.0 * seed + 0.1 * (seed % 2))}

    assert verdict("dbs-beats-soful", make) == expected
    assert verdict("dbs-beats-cbscfd", make) == expected


@pytest.mark.parametrize(
    ("deltas", "expected"),
    [((0.5, 0.4, 0.3, 0.2), REPRODUCED), ((0.5, 0.3, 0.2, 0.1), PARTLY), ((0.3, 0.2, 0.1, 0.0), NOT)],
)
def test_exponents(deltas: tuple[float, ...], expected: str) -> None:
    """log Delta / log t at the end."""

    def make(contender: Spec, _: int, share: float) -> Made:
        exponent = deltas[(50, 200, 350, 450).index(contender.get("size"))]
        return {"regret": 1.0, "delta": (4000 * share) ** exponent}

    assert verdict("exponent-crosses", make) == expected


def test_matrix_approximation() -> None:
    """Larger epsilon, larger error; a certificate that is exceeded once undoes the claim."""

    def make(contender: Spec, _: int, share: float) -> Made:
        if contender.name == "fd":
            return {"error": 10 * share, "certificate": 20 * share, "bound": 30 * share}
        epsilon = float(contender.get("epsilon"))
        return {"error": 0.1 * epsilon, "certificate": epsilon, "bound": 2 * epsilon}

    def lying(contender: Spec, seed: int, share: float) -> Made:
        return {**make(contender, seed, share), **({"error": 99.0} if share == 0.5 else {})}

    def reversed_(contender: Spec, seed: int, share: float) -> Made:
        made = make(contender, seed, share)
        return {**made, "error": 3.0 - made["error"]}

    assert verdict("error-grows-with-epsilon", make) == REPRODUCED
    assert verdict("error-grows-with-epsilon", reversed_) == NOT
    assert verdict("error-stays-bounded", make) == REPRODUCED
    assert verdict("error-stays-bounded", lying) == NOT


def test_bounds_are_evaluated() -> None:
    """On a flat spectrum SOFUL's bound is vacuous for ever and DBSLinUCB's is not."""
    assert (
        verdict("bounds", lambda _c, _s, share: {"regret": 100 * share, "delta": 75.0, "rank": 500})
        == REPRODUCED
    )
    small = verdict("bounds", lambda _c, _s, share: {"regret": 100 * share, "delta": 1e-9, "rank": 500})
    assert small == PARTLY, "without a spectral error SOFUL's bound is as good"


@pytest.mark.parametrize(
    ("slope", "regret", "seconds"), [(1.0, REPRODUCED, NOT), (0.0, NOT, NOT), (-1.0, NOT, REPRODUCED)]
)
def test_epsilon_trends(slope: float, regret: str, seconds: str) -> None:
    """Both are read off the ends of every line."""

    def make(contender: Spec, _: int, share: float) -> Made:
        value = share * (100.0 + slope * float(contender.get("epsilon")))
        return {"regret": value, "seconds": value}

    assert verdict("epsilon-costs-regret", make) == regret
    assert verdict("epsilon-saves-time", make) == seconds
    assert verdict("not-monotone", make) == (NOT if slope > 0 else REPRODUCED)


def test_noise_is_no_trend() -> None:
    """A rise of the mean that the permutations do not agree on is none."""

    def make(contender: Spec, seed: int, share: float) -> Made:
        swing = {2: 0.0, 4: (9.0, -4.0, -4.0)[seed]}.get(contender.get("epsilon"), (9.0, -4.0, -3.0)[seed])
        return {"regret": share * (100.0 + swing), "seconds": share * (100.0 + swing)}

    assert verdict("not-monotone", make) == REPRODUCED
    assert verdict("epsilon-costs-regret", make) == NOT
    assert verdict("epsilon-saves-time", make) == NOT


def test_first_sizes() -> None:
    """Less regret and more time for a larger l0; and what they are at the smallest epsilon."""

    def make(contender: Spec, _: int, share: float) -> Made:
        size, epsilon = float(contender.get("size")), float(contender.get("epsilon"))
        return {"regret": share * (100 + epsilon * 500 / size), "seconds": share * size}

    assert verdict("first-size", make) == REPRODUCED
    assert verdict("first-size", lambda c, s, x: {**make(c, s, x), "seconds": x}) == PARTLY
    assert verdict("first-size", lambda _c, _s, x: {"regret": x, "seconds": x}) == NOT
    assert verdict("small-epsilon-forgets-size", make) == PARTLY
    assert verdict("small-epsilon-forgets-size", lambda _c, _s, x: {"regret": x}) == REPRODUCED


def front(blocks: float, fixed: float) -> Make:
    """Regret falls with the cost; each method has its own level."""

    def make(contender: Spec, _: int, share: float) -> Made:
        size = float(contender.get("size", 700))
        level = {"oful": 200.0, "dbslinucb": blocks}.get(contender.name, fixed)
        return {"regret": share * level * (1 + 20 / size), "seconds": size, "peak_bytes": int(1000 * size)}

    return make


def in_few_dimensions(blocks: float, fixed: float) -> Make:
    """Nobody can be larger than 60, whatever size was asked for."""

    def make(contender: Spec, seed: int, share: float) -> Made:
        return {**front(blocks, fixed)(contender, seed, share), "seconds": 60.0, "peak_bytes": 60_000}

    return make


def test_fronts() -> None:
    """Compared at equal cost, front against front, and only where there is something to compare."""
    for name in ("front-soful", "front-cbscfd", "fronts-elsewhere"):
        make = front if name.startswith("front-") else in_few_dimensions
        assert verdict(name, make(200.0, 400.0)) == REPRODUCED
        assert verdict(name, make(400.0, 200.0)) == NOT
        assert verdict(name, lambda _c, _s, x: {"regret": 100.0 * x}) == NOT, "all alike"
    made = results(["pareto-mnist"], front(200.0, 400.0))
    found = compare(made, "pareto-mnist", "DBSLinUCB-FD", "SOFUL", "seconds")
    # l = 10 is cheaper than any DBS (l0 >= 50): nine of the ten are comparable
    assert found[:4] == (10, 9, 9, 0)
    # the best is against l = 76, for whose cost and 10 % more l0 = 83 can be had
    assert found.best == pytest.approx(1 - 200 * (1 + 20 / 83) / (400 * (1 + 20 / 76)), abs=0.03)


def test_a_rival_that_is_better_and_cheaper_is_not_beaten() -> None:
    """Nine sizes that are worse than their own tenth do not count."""

    def make(contender: Spec, seed: int, share: float) -> Made:
        made = front(200.0, 400.0)(contender, seed, share)
        if contender.get("size") == 10:
            made["regret"] = 50.0 * share
        return made

    found = compare(results(["pareto-mnist"], make), "pareto-mnist", "DBSLinUCB-FD", "SOFUL", "seconds")
    assert found[:4] == (1, 0, 0, 0)
    assert verdict("front-soful", make) == NOT
    assert verdict("front-cbscfd", make) == NOT


def test_out_of_reach_is_not_reproduced() -> None:
    """A method that costs more than every setting of the other has beaten nobody."""

    def make(contender: Spec, seed: int, share: float) -> Made:
        made = front(200.0, 400.0)(contender, seed, share)
        if contender.name == "dbslinucb":
            made |= {"seconds": 1e6, "peak_bytes": 10**9}
        return made

    for name in ("front-soful", "front-cbscfd", "fronts-elsewhere"):
        assert verdict(name, make) == NOT


def test_savings_and_robustness() -> None:
    """Against OFUL at 700 units of cost, and the paper's 300 and 500."""

    def make(contender: Spec, _: int, share: float) -> Made:
        size = float(contender.get("size", 1000))
        level = {"oful": 200.0, "dbslinucb": 210.0}.get(contender.name, 250.0)
        if contender.name == "soful" and size == 10:
            level = 600.0
        return {"regret": share * level, "seconds": size, "peak_bytes": int(10 * size)}

    assert verdict("savings", make) == REPRODUCED
    assert verdict("robust", make) == REPRODUCED
    assert verdict("oful-regret", make) == REPRODUCED
    assert verdict("robust", front(800.0, 250.0)) == NOT
    assert verdict("oful-regret", lambda _c, _s, x: {"regret": 130 * x}) == PARTLY
    assert verdict("oful-regret", lambda _c, _s, x: {"regret": 60 * x}) == NOT

    def dear(contender: Spec, seed: int, share: float) -> Made:
        return {**make(contender, seed, share), "seconds": 1.0, "peak_bytes": 1000}

    assert verdict("savings", dear) == NOT
    assert verdict("savings", front(900.0, 250.0)) == NOT, "nothing comes near OFUL"

    def one_each(contender: Spec, seed: int, share: float) -> Made:
        made = {**make(contender, seed, share), "seconds": 1000.0, "peak_bytes": 10_000}
        if contender.name == "dbslinucb":
            made |= {"seconds": 1.0} if contender.get("compensation") else {"peak_bytes": 1}
        return made

    assert verdict("savings", one_each) == NOT, "time in one setting and space in another are not both"


def test_mnist_curves_and_space() -> None:
    """Sizes, times, rank and bytes."""
    regrets = {20: 300.0, 100: 260.0, 150: 205.0}
    seconds = {"oful": 2.3, "dbslinucb": 1.4}
    space = {"oful": 4802, "dbslinucb": 2842}

    def make(contender: Spec, _: int, share: float) -> Made:
        size = contender.get("size")
        return {
            "regret": share * (200.0 if contender.name != "soful" else regrets[size]),
            "seconds": share * seconds.get(contender.name, 0.9),
            "peak_bytes": space.get(contender.name, 2529),
            "rank": 784,
        }

    names = ("mnist-small-sizes", "mnist-time", "full-rank", "space", "space-like-soful")
    assert [verdict(name, make) for name in names] == [REPRODUCED] * 5

    def ours(contender: Spec, seed: int, share: float) -> Made:
        made = {**make(contender, seed, share), "rank": 600}
        if contender.name == "dbslinucb":
            made |= {"seconds": 5.0, "peak_bytes": 5000}
        return {**made, "regret": share * 200.0}

    assert [verdict(name, ours) for name in names] == [NOT] * 5


def test_spam_and_consistency() -> None:
    """OFUL hard to beat; FD and RFD alike for blocks."""
    assert verdict("spam-oful", front(60.0, 400.0)) == REPRODUCED
    assert verdict("spam-oful", front(400.0, 20.0)) == NOT

    def make(contender: Spec, seed: int, share: float) -> Made:
        made = front(200.0, 300.0)(contender, seed, share)
        if contender.name == "cbscfd":
            made["regret"] *= 1.5
        return made

    assert verdict("consistent", make) == REPRODUCED
    assert verdict("consistent", front(200.0, 300.0)) == NOT


def test_intervals_are_students() -> None:
    """Mean ± t s/sqrt(n): 12.706 for two values; unknown for one."""
    found = estimate([1.0, 3.0])
    assert found.mean == 2.0
    assert found.half == pytest.approx(12.706, rel=1e-3)
    assert np.isnan(estimate([1.0]).half)
    assert f"{found:.1f}" == "2.0 ± 12.7"
    assert f"{estimate([1.0]):.1f}" == "1.0"


def test_a_claim_reads_only_its_own_runs() -> None:
    """Rows of other settings in the same folder change nothing."""
    clean = results(["mnist-space"], lambda _c, _s, x: {"regret": 200.0 * x, "rank": 700})
    stray = clean.all_rows.assign(run="stray", peak_bytes=10**9)
    mixed = Results(pd.concat([clean.all_rows, stray]), FULL, choose(["mnist-space"]))
    assert BY_ID["space"].finding(mixed) == BY_ID["space"].finding(clean)


def test_missing_runs_are_not_judged() -> None:
    """A claim whose runs are not all there says how many are missing, and makes no verdict of the rest."""
    whole = results(["mnist-space"], lambda _c, _s, x: {"regret": 200.0 * x, "rank": 700})
    lost = whole.all_rows[(whole.all_rows["contender"] != "oful") | (whole.all_rows["seed"] != 1)]
    found = BY_ID["space"].finding(Results(lost, FULL, choose(["mnist-space"])))
    assert found == (OPEN, "1 runs are missing")
    none = whole.all_rows[whole.all_rows["contender"] != "oful"]
    partial = Results(none, FULL, choose(["mnist-space"]))
    assert BY_ID["space"].finding(partial).verdict == OPEN
    header, rows = table(partial, "mnist-space")
    assert header[0] == "method"
    assert [row[0] for row in rows] == ["SOFUL, l = 20", "SOFUL, l = 100", "SOFUL, l = 150", "DBSLinUCB-FD"]


def test_absolute_numbers_need_the_whole_run() -> None:
    """A quarter of the rounds cannot have the regret of all of them."""
    short = results(["pareto-mnist"], front(200.0, 400.0), replace(FULL, rounds=0.25))
    for name in ("oful-regret", "robust", "savings"):
        assert BY_ID[name].finding(short) == (OPEN, "needs the full number of rounds")
    assert BY_ID["front-soful"].finding(short).verdict == REPRODUCED


# -- ours ---------------------------------------------------------------------------------------------


def adaptive(
    rows: float, seconds: float, *, anytime: float = 1.0, regret: float = 1.0, over: float = 0.0
) -> Make:
    """The adaptive sketch with a share of what DBSLinUCB takes, and of what its budget allows."""

    def make(contender: Spec, _: int, share: float) -> Made:
        made = {"regret": 100.0 * share, "sketch_rows": 300, "seconds": 3.0, "budget": 8.0 * share}
        if contender.name == "adaptive":
            made |= {"sketch_rows": int(300 * rows), "seconds": 3.0 * seconds}
            made["certificate"] = 8.0 * share + over * (share == 0.5)
            if contender.get("horizon") is None:
                made |= {"sketch_rows": int(300 * rows * anytime), "regret": 100.0 * regret * share}
        made["seconds"] *= share
        return made

    return make


def test_our_claims_about_rows_and_time() -> None:
    """A third of each; with one of them the claim holds partly, with neither not."""
    assert verdict("adaptive-third", adaptive(0.3, 0.3)) == REPRODUCED
    assert verdict("adaptive-third", adaptive(0.3, 0.4)) == PARTLY
    assert verdict("adaptive-third", adaptive(0.4, 0.4)) == NOT
    assert verdict("adaptive-anytime", adaptive(0.3, 0.3, anytime=1.4)) == REPRODUCED
    assert verdict("adaptive-anytime", adaptive(0.3, 0.3, anytime=1.6)) == PARTLY
    assert verdict("adaptive-anytime", adaptive(0.3, 0.3, anytime=1.6, regret=1.2)) == NOT
    assert verdict("adaptive-exact", adaptive(1.0, 1.1)) == REPRODUCED
    assert verdict("adaptive-exact", adaptive(0.9, 1.1)) == PARTLY, "not exact"
    assert verdict("adaptive-exact", adaptive(1.0, 1.3)) == NOT


def test_a_budget_that_is_exceeded_once_is_not_kept() -> None:
    """At any point of any run."""
    assert verdict("adaptive-budget", adaptive(0.3, 0.3)) == REPRODUCED
    assert verdict("adaptive-budget", adaptive(0.3, 0.3, over=1e-9)) == NOT


@pytest.mark.parametrize(
    ("regret", "cost", "near", "fronts"),
    [
        (1.0, 0.1, REPRODUCED, REPRODUCED),
        (1.02, 0.3, NOT, REPRODUCED),
        (1.1, 0.1, NOT, REPRODUCED),
        (1.1, 2.0, NOT, NOT),
    ],
)
def test_our_claims_about_fronts(regret: float, cost: float, near: str, fronts: str) -> None:
    """Who is cheaper than all others is on the fronts; who is dearer and worse is not."""

    def make(contender: Spec, _: int, share: float) -> Made:
        if contender.name == "adaptive":
            return {"regret": 100.0 * regret * share, "seconds": cost, "peak_bytes": int(1000 * cost)}
        return {"regret": 100.0 * share, "seconds": 1.0, "peak_bytes": 1000}

    assert verdict("adaptive-oful", make) == near
    assert verdict("adaptive-fronts", make) == fronts


def test_near_oful_on_one_data_set_is_partly() -> None:
    """The rule asks for both."""

    def make(contender: Spec, seed: int, share: float) -> Made:
        if contender.name != "adaptive":
            return {"regret": 100.0 * share, "seconds": 1.0, "peak_bytes": 1000}
        near = contender.get("epsilon") == 8
        return {"regret": (100.0 if near else 150.0) * share, "seconds": 0.3, "peak_bytes": 100 + seed}

    claim = BY_ID["adaptive-oful"]
    assert claim.finding(results(claim.needs, make)).verdict == REPRODUCED
    some = results(claim.needs, make)
    away = some.all_rows["environment"].str.contains("cnae") & some.all_rows["contender"].str.startswith("a")
    some.all_rows.loc[away & (some.all_rows["kind"] == "play"), "regret"] += 50.0
    assert claim.finding(some).verdict == PARTLY


def test_a_setting_that_another_method_beats_is_behind_the_front() -> None:
    """No dearer and surely better, or a tenth cheaper and not surely worse."""

    def make(contender: Spec, _: int, share: float) -> Made:
        if contender.name == "adaptive":
            epsilon = float(contender.get("epsilon"))
            return {"regret": (100.0 + epsilon) * share, "seconds": 1.0, "peak_bytes": 1000}
        if contender.name == "cbscfd":
            return {"regret": 101.5 * share, "seconds": 0.95, "peak_bytes": 500}
        return {"regret": 200.0 * share, "seconds": 2.0, "peak_bytes": 2000}

    claim = BY_ID["adaptive-fronts"]
    found = claim.finding(results(claim.needs, make))
    assert found.verdict == PARTLY
    assert "mnist: 1 of 8 in time, 1 of 8 in space" in found.ours


def ruled(*, per_rule: dict[str, float], seeds: tuple[float, ...] = (1.0, 1.0, 1.0)) -> Make:
    """Regret by rule (100 unless said), times that of the seed for plain UCB."""

    def make(contender: Spec, seed: int, share: float) -> Made:
        rule = "floor" if contender.get("floor") else str(contender.get("explore", "ucb"))
        factor = seeds[seed] if rule == "ucb" else 1.0
        return {"regret": share * factor * per_rule.get(rule, 100.0)}

    return make


@pytest.mark.parametrize(
    ("name", "per_rule", "expected"),
    [
        ("rules-worst", {"thompson": 109.0}, REPRODUCED),
        ("rules-worst", {"thompson": 111.0}, NOT),
        ("rules-untuned", {"thompson": 109.0}, REPRODUCED),
        ("rules-untuned", {"thompson": 111.0}, NOT),
        ("rules-alike", {"thompson": 81.0}, REPRODUCED),
        ("rules-alike", {"thompson": 79.0}, NOT),
        ("rules-alike", {"thompson": 126.0}, NOT),
        ("rules-floor", {"floor": 119.0}, REPRODUCED),
        ("rules-floor", {"floor": 121.0}, NOT),
        ("rules-greedy", {"greedy": 151.0}, REPRODUCED),
        ("rules-greedy", {"greedy": 149.0}, NOT),
        ("late-fixed", {"thompson": 50.0, "inverse-gap": 50.0, "epsilon-greedy": 49.0}, REPRODUCED),
        ("late-fixed", {"thompson": 50.0, "inverse-gap": 51.0}, PARTLY),
        ("late-fixed", {"thompson": 51.0}, NOT),
        ("late-drawn", {"thompson": 92.0}, REPRODUCED),
        ("late-drawn", {"greedy": 82.0}, PARTLY),
        ("late-drawn", {"inverse-gap": 79.0}, NOT),
    ],
)
def test_our_claims_about_rules(name: str, per_rule: dict[str, float], expected: str) -> None:
    """Each on either side of its rule."""
    assert verdict(name, ruled(per_rule=per_rule)) == expected


def test_the_worst_permutation_is_what_counts_for_the_worst() -> None:
    """UCB of mean 100 that starves on one permutation: Thompson's 150 are better, though not in the mean."""
    make = ruled(per_rule={"thompson": 150.0}, seeds=(0.5, 0.5, 2.0))
    assert verdict("rules-worst", make) == REPRODUCED
    assert verdict("rules-alike", make) == NOT


def test_a_claim_that_holds_on_some_data_is_partly() -> None:
    """Results that are good on mnist alone."""
    claim = BY_ID["rules-floor"]
    found = results(claim.needs, ruled(per_rule={"floor": 150.0}))
    mnist = found.all_rows["environment"] == "classification:data=mnist"
    found.all_rows.loc[mnist, "regret"] = 100.0
    assert claim.finding(found).verdict == PARTLY
