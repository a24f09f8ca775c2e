"""What we claim beyond linear, light-tailed and stationary rewards, by rules written before the runs."""

from collections.abc import Callable

from sketchbandit_paper.claims.base import Claim, Finding, is_surely_less, members, verdict
from sketchbandit_paper.definitions import beyond as b
from sketchbandit_paper.plan import environment_of
from sketchbandit_paper.results import Results
from sketchbandit_paper.stretches import BACK_WITHIN, before_and_after, rounds_until_back

_PLACES = [f"{name}-{rate}" for name in ("gaussian", "mnist") for rate in b.BASE_RATES]
_CLICKS = tuple(f"clicks-{place}" for place in _PLACES)


def _mean(results: Results, name: str, label: str, column: str = "regret") -> float:
    return float(results.finals(name, members(results, name, label)[0], column).mean())


def _everywhere(judge: Callable[[str], tuple[bool, str]]) -> Finding:
    found = {place: judge(name) for place, name in zip(_PLACES, _CLICKS, strict=True)}
    good = [fine for fine, _ in found.values()]
    text = "; ".join(f"{place} %: {ours}" for place, (_, ours) in found.items())
    return Finding(verdict(all(good), any(good)), text)


def _log_loss(results: Results) -> Finding:
    def here(name: str) -> tuple[bool, str]:
        one, other = (
            results.finals(name, members(results, name, label)[0], "log_loss")
            for label in (b.LOGISTIC, b.LINEAR)
        )
        rounds = results.of(name, members(results, name, b.LINEAR)[0])["rounds"].iloc[0]
        text = f"{one.mean() / rounds:.3f} against {other.mean() / rounds:.3f}"
        return is_surely_less(one, other), text

    return _everywhere(here)


def _regret(results: Results) -> Finding:
    def here(name: str) -> tuple[bool, str]:
        one, other = (_mean(results, name, label) for label in (b.LOGISTIC, b.LINEAR))
        return one <= 1.1 * other, f"{one:.0f} against {other:.0f}"

    return _everywhere(here)


def _tails(name: str, reproduced: float, partly: float) -> Callable[[Results], Finding]:
    def judge(results: Results) -> Finding:
        one, other = (_mean(results, name, label) for label in (b.ROBUST, b.LINEAR))
        text = f"{one:.0f} against {other:.0f}"
        return Finding(verdict(one <= reproduced * other, one <= partly * other), text)

    return judge


def _back(name: str) -> Callable[[Results], Finding]:
    def judge(results: Results) -> Finding:
        switch = environment_of(results.experiments[name], results.profile).get("switch")
        found = {}
        for label in (b.SLOWLY, b.FASTER, b.NEVER):
            member = members(results, name, label)[0]
            before, after = before_and_after(results, name, member, switch)
            found[label] = rounds_until_back(results, name, member, switch), before, after
        text = "; ".join(
            f"{label}: {'never' if rounds is None else f'after {rounds:,} rounds'}, "
            f"{before:.4f} a round before, {after:.4f} at the end"
            for label, (rounds, before, after) in found.items()
        )
        forgets = [found[label][0] is not None for label in (b.SLOWLY, b.FASTER)]
        stays = found[b.NEVER][0] is None
        return Finding(verdict(any(forgets) and stays, any(forgets)), text)

    return judge


def _turn(results: Results) -> Finding:
    one, faster, other = (
        results.finals("drift-turn", members(results, "drift-turn", label)[0])
        for label in (b.SLOWLY, b.FASTER, b.NEVER)
    )
    better = [is_surely_less(mine, other) for mine in (one, faster)]
    text = f"{one.mean():.0f} (0.999), {faster.mean():.0f} (0.995) against {other.mean():.0f}"
    return Finding(verdict(all(better), any(better)), text)


def _rows(results: Results) -> Finding:
    name = "forgetting-rows"
    rows = results.of(name, members(results, name, b.SLOWLY)[0])
    most = float(rows["certificate"].max())
    early = int(rows["sketch_rows"][rows["round"] <= rows["rounds"] / 2].max())
    late = int(rows["sketch_rows"][rows["round"] > rows["rounds"] / 2].max())
    dim = results.experiments[name].environment.get("dim")
    text = f"certificate at most {most:.2f}; rows at most {early} in the first half, {late} in the second"
    return Finding(verdict(most <= b.EPSILON and late <= early < dim, most <= b.EPSILON), text)


_SIX = "at 2, 10 and 50 % on synthetic arms and mnist; partly: at some"
_BACK = (
    f"with forget = 0.999 or 0.995 four stretches (a tenth of the rounds) have at most {BACK_WITHIN} times "
    "the regret of those before the change, without never; partly: without as well"
)
CLAIMS = (
    Claim(
        id="clicks-log-loss",
        statement="logistic rewards predict clicks better than linear ones",
        paper="less log loss",
        rule=f"surely less, paired, {_SIX}",
        needs=_CLICKS,
        judge=_log_loss,
        whole=True,
    ),
    Claim(
        id="clicks-regret",
        statement="that costs no regret",
        paper="at most 1.1 times",
        rule=f"mean regret at most that {_SIX}",
        needs=_CLICKS,
        judge=_regret,
        whole=True,
    ),
    Claim(
        id="tails-heavy",
        statement="with noise of t(1.5) robust rewards halve the regret of linear ones in 10,000 rounds",
        paper="at most 50 %",
        rule="mean regret at most half; partly: at most 80 %",
        needs=("tails-1.5",),
        judge=_tails("tails-1.5", 0.5, 0.8),
        whole=True,
    ),
    Claim(
        id="tails-light",
        statement="with noise of t(3), of finite variance, they cost little",
        paper="at most 1.1 times",
        rule="mean regret at most that; partly: 1.25 times",
        needs=("tails-3",),
        judge=_tails("tails-3", 1.1, 1.25),
        whole=True,
    ),
    Claim(
        id="tails-outliers",
        statement="with one reward in twenty off by 10 they halve the regret on mnist",
        paper="at most 50 %",
        rule="mean regret at most half; partly: at most 80 %",
        needs=("tails-mnist",),
        judge=_tails("tails-mnist", 0.5, 0.8),
        whole=True,
    ),
    Claim(
        id="drift-switch",
        statement="who forgets is back soon after theta* has changed, who does not is not",
        paper="within 10 % of the regret a round before",
        rule=_BACK,
        needs=("drift-switch",),
        judge=_back("drift-switch"),
        whole=True,
    ),
    Claim(
        id="drift-mnist",
        statement="the same where another label pays",
        paper="within 10 % of the regret a round before",
        rule=_BACK,
        needs=("drift-mnist",),
        judge=_back("drift-mnist"),
        whole=True,
    ),
    Claim(
        id="drift-turn",
        statement="who forgets has less regret where theta* turns",
        paper="less",
        rule="surely less, paired, with 0.999 and 0.995; partly: with one of them",
        needs=("drift-turn",),
        judge=_turn,
        whole=True,
    ),
    Claim(
        id="forgetting-rows",
        statement="with forgetting the certificate stays below epsilon, and the rows stop growing in number",
        paper="100,000 rounds",
        rule="never above epsilon, no more rows in the second half, never all of them; partly: the former",
        needs=("forgetting-rows",),
        judge=_rows,
        whole=True,
    ),
)
