"""What we claim for the exploration rules, judged by rules that were written before the runs."""

from collections.abc import Callable

from sketchbandit.arrays import Vector
from sketchbandit_paper.claims.base import Claim, Finding, members, verdict
from sketchbandit_paper.definitions import exploration as rules
from sketchbandit_paper.results import Results

_PLACES = ("mnist", "cnae-9", "mfeat", "low-rank")
_IDS = tuple(f"exploration-{name}" for name in _PLACES)
_UNTUNED = "-untuned"
_FLOOR = 0.01


def _regrets(results: Results, name: str, label: str, which: int = 0) -> Vector:
    """At the end, of every permutation; ``which`` is the place of the delay."""
    return results.finals(name, members(results, name, label)[which])


def _everywhere(judge: Callable[[str], tuple[bool, str]]) -> Finding:
    """Good on all data: reproduced; on some: partly."""
    found = {place: judge(name) for place, name in zip(_PLACES, _IDS, strict=True)}
    good = [fine for fine, _ in found.values()]
    text = "; ".join(f"{place}: {ours}" for place, (_, ours) in found.items())
    return Finding(verdict(all(good), any(good)), text)


def _worst(
    one: str, other: str, test: Callable[[float, float], bool], suffix: str = ""
) -> Callable[[Results], Finding]:
    def judge(results: Results) -> Finding:
        def here(name: str) -> tuple[bool, str]:
            mine, theirs = (float(_regrets(results, name + suffix, label).max()) for label in (one, other))
            return test(mine, theirs), f"{mine:.0f} against {theirs:.0f}"

        return _everywhere(here)

    return judge


def _alike(results: Results) -> Finding:
    def here(name: str) -> tuple[bool, str]:
        mine, theirs = (_regrets(results, name, label).mean() for label in (rules.THOMPSON, rules.UCB))
        return bool(0.8 * theirs <= mine <= 1.25 * theirs), f"{mine:.0f} against {theirs:.0f}"

    return _everywhere(here)


def _premium(results: Results) -> Finding:
    def here(name: str) -> tuple[bool, str]:
        more = _regrets(results, name, rules.FLOORED).mean() - _regrets(results, name, rules.UCB).mean()
        return bool(more <= _FLOOR * results.experiments[name].rounds), f"{more:+.1f}"

    return _everywhere(here)


def _late_fixed(results: Results) -> Finding:
    name = "late-rewards-fixed"
    ucb = _regrets(results, name, rules.UCB, -1).mean()
    labels = (rules.THOMPSON, rules.INVERSE_GAP, rules.EPSILON_GREEDY)
    shares = [_regrets(results, name, label, -1).mean() / ucb for label in labels]
    text = ", ".join(f"{label} {share:.0%}" for label, share in zip(labels, shares, strict=True))
    return Finding(verdict(max(shares) <= 0.5, min(shares) <= 0.5), f"of UCB's {ucb:.0f}: {text}")


def _late_drawn(results: Results) -> Finding:
    name = "late-rewards-drawn"
    means = {label: _regrets(results, name, label, -1).mean() for label, _ in results.series(name)}
    best = min(means, key=means.__getitem__)
    worse = means[rules.UCB] / means[best]
    text = f"UCB {means[rules.UCB]:.0f}, the least {means[best]:.0f} ({best})"
    return Finding(verdict(worse <= 1.1, worse <= 1.25), text)


_ALL = "on mnist, cnae-9, mfeat and low-rank; partly: on some"
CLAIMS = (
    Claim(
        id="rules-worst",
        statement="Thompson's worst permutation is hardly worse than UCB's",
        paper="at most 1.1 times",
        rule=f"at most that {_ALL}",
        needs=_IDS,
        judge=_worst(rules.THOMPSON, rules.UCB, lambda mine, theirs: mine <= 1.1 * theirs),
        whole=True,
    ),
    Claim(
        id="rules-alike",
        statement="where UCB does not starve, Thompson earns about as much",
        paper="0.8 to 1.25 times the mean regret",
        rule=f"within that {_ALL}",
        needs=_IDS,
        judge=_alike,
        whole=True,
    ),
    Claim(
        id="rules-floor",
        statement="one per cent of uniform choices costs UCB at most those choices",
        paper="at most 20 more in 2,000 rounds",
        rule=f"at most that in the mean {_ALL}",
        needs=_IDS,
        judge=_premium,
        whole=True,
    ),
    Claim(
        id="rules-greedy",
        statement="who does not explore at all loses some permutation",
        paper="worst at least 1.5 times Thompson's",
        rule=f"at least that {_ALL}",
        needs=_IDS,
        judge=_worst(rules.GREEDY, rules.THOMPSON, lambda mine, theirs: mine >= 1.5 * theirs),
        whole=True,
    ),
    Claim(
        id="rules-untuned",
        statement="with its default Thompson's worst permutation is hardly worse than UCB's with its own",
        paper="at most 1.1 times",
        rule=f"at most that, nothing tuned, {_ALL}",
        needs=tuple(name + _UNTUNED for name in _IDS),
        judge=_worst(rules.THOMPSON, rules.UCB, lambda mine, theirs: mine <= 1.1 * theirs, _UNTUNED),
        whole=True,
    ),
    Claim(
        id="late-fixed",
        statement="with the same arms every round and rewards 1,000 rounds late, chance halves UCB's regret",
        paper="at most 50 %",
        rule="Thompson, InverseGap and EpsilonGreedy at most that in the mean; partly: one of them",
        needs=("late-rewards-fixed",),
        judge=_late_fixed,
        whole=True,
    ),
    Claim(
        id="late-drawn",
        statement="with arms drawn anew UCB bears rewards 1,000 rounds late as well as any rule",
        paper="within 10 %",
        rule="mean regret at most 1.1 times that of the best rule; partly: 1.25 times",
        needs=("late-rewards-drawn",),
        judge=_late_drawn,
        whole=True,
    ),
)
