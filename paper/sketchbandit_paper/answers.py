"""The answer that a report opens with: one figure, and sentences that follow from the results."""

from collections.abc import Callable, Sequence
from functools import partial
from operator import itemgetter
from typing import Any, NamedTuple

from matplotlib.figure import Figure

from sketchbandit.policy.recipes import EXACT_UP_TO
from sketchbandit.simulation import environments
from sketchbandit.simulation.specs import UNIFORM, is_chance
from sketchbandit_paper import plan
from sketchbandit_paper.definitions.tour import DEFAULT, EXACT, TOUR
from sketchbandit_paper.figures import DRAWN
from sketchbandit_paper.figures.races import side_by_side
from sketchbandit_paper.figures.verdicts import verdict_bars
from sketchbandit_paper.profiles import TOUR as AMOUNT
from sketchbandit_paper.results import Results, estimate, summary
from sketchbandit_paper.verdicts import Findings, counts, judged, said_of

Line = dict[str, Any]


class Answer(NamedTuple):
    """What the results show."""

    sentences: tuple[str, ...]
    draw: Callable[[], Figure] | None
    """Draws the figure that goes with them; None where there is none."""
    panels: tuple[Callable[[], Figure], ...] = ()
    """Draw its panels one by one, for a narrow page; none where the figure is one panel itself."""


def is_tour(results: Results) -> bool:
    """Whether these are the results of the tour, and it is whole."""
    return results.profile.name == AMOUNT.name and all(
        results.has(name) and not results.missing(name) for name in TOUR
    )


def of_tour(results: Results) -> Answer:
    """Where the default stands, and what it costs beside the exact algorithm with few and many features."""
    rounds = plan.rounds_of(results.experiments[TOUR[0]], results.profile)
    sentences = [
        "Regret is what a policy loses against the best choice of every round: lower is better. A run has "
        f"{rounds:,} rounds, and nothing is tuned.",
        *(_standing(results, name) for name in TOUR),
        _overhead(results, TOUR[0]),
        _price(results, TOUR[-1]),
    ]
    panels = tuple(partial(side_by_side, results, [name]) for name in TOUR)
    return Answer(tuple(filter(None, sentences)), lambda: side_by_side(results, TOUR), panels)


def of_claims(results: Results, findings: Findings, ours: Findings) -> Answer:
    """How many claims the run can judge, and the verdicts; without any, the first experiment's figure."""
    sets = {"the paper's": findings, "our own": ours}
    sentences = tuple(filter(None, (said_of(found, whose) for whose, found in sets.items())))
    counted = {f"{whose} claims": counts(known) for whose, found in sets.items() if (known := judged(found))}
    if counted:
        return Answer(sentences, lambda: verdict_bars(counted, "claims that this run can judge"))
    drawn = [name for name, e in results.experiments.items() if e.figure in DRAWN and results.has(name)]
    if not drawn:
        return Answer(sentences, None)
    draw = DRAWN[results.experiments[drawn[0]].figure]
    return Answer(sentences, lambda: draw(results, drawn[0]))


def of_race(results: Results, name: str) -> Answer:
    """Who has the least regret and whether that is sure, and who costs how much."""
    lines = _learners(results, name)
    if not lines:
        return Answer((), None)
    sentences = [_winner(results, name, lines)]
    if len(lines) > 1:
        sentences.append(_costs(lines))
    sentences += [
        f"{line['label']} warned in {line['warned']} of {_runs(line)} that its sketch is too small."
        for line in lines
        if line["warned"]
    ]
    return Answer(tuple(sentences), lambda: side_by_side(results, [name]))


def _learners(results: Results, name: str) -> list[Line]:
    """Those who learn, the least mean regret first."""
    lines = [line for line in summary(results, name) if line["learns"]]
    return sorted(lines, key=_regret)


def _regret(line: Line) -> float:
    return float(line["regret"].mean)


def _standing(results: Results, name: str) -> str:
    """The regret of the default, and how it compares with the least."""
    lines = _learners(results, name)
    mine, best = _labelled(lines, DEFAULT), lines[0]
    seeds = _seeds(mine)
    said = f"On {results.experiments[name].title} the default's regret is {_regret(mine):.1f}"
    if mine is best:
        said += f", the least of all ({_name(lines[1])} is next with {_regret(lines[1]):.1f})"
    elif _is_surely_more(mine, best):
        more = _regret(mine) / _regret(best) - 1.0
        said += f", {more:.0%} more than the best ({_name(best)} with {_regret(best):.1f})"
    else:
        said += f"; the best is {_name(best)} with {_regret(best):.1f}, too close for {seeds} to tell apart"
    worst = f"The worst of {seeds} has {mine['worst']:.1f}; a" if mine["permutations"] > 1 else "A"
    return f"{said}. {worst} uniform choice has {_chance(results, name):,.0f}."


def _overhead(results: Results, name: str) -> str:
    """Why the default costs more than the exact algorithm where it is exact itself; empty if it does not."""
    experiment = results.experiments[name]
    columns = environments.build(plan.environment_of(experiment, results.profile), seed=0).dim + 1
    time, space = _beside(results, name, DEFAULT, EXACT)
    if columns > EXACT_UP_TO or max(time, space) <= 1.0:
        return ""
    return (
        f"On {experiment.title} the default takes {time:.1f} times the time of OFUL and {space:.1f} times "
        f"its memory: up to {EXACT_UP_TO} columns it is exact OFUL that also learns a scaling during a "
        "warm-up and explores by Thompson sampling. Its sketch saves time and memory where there are more "
        "features."
    )


def _price(results: Results, name: str) -> str:
    """What the exact algorithm costs beside the default, and what that buys."""
    lines = _learners(results, name)
    mine, exact = _labelled(lines, DEFAULT), _labelled(lines, EXACT)
    time, space = _beside(results, name, EXACT, DEFAULT)
    change = _regret(exact) / _regret(mine) - 1.0
    if _is_surely_more(exact, mine) or _is_surely_more(mine, exact):
        buys = f"for {abs(change):.0%} {'less' if change < 0 else 'more'} regret"
    else:
        buys = f"for a regret that {_seeds(mine)} cannot tell apart from the default's ({_regret(exact):.1f})"
    return (
        f"On {results.experiments[name].title} {_name(exact)} takes {time:.1f} times the time of the default "
        f"and {space:.1f} times its memory, {buys}."
    )


def _beside(results: Results, name: str, label: str, other: str) -> tuple[float, float]:
    """How many times the time and the memory of another one takes."""
    lines = _learners(results, name)
    mine, its = _labelled(lines, label), _labelled(lines, other)
    return mine["seconds_a_round"] / its["seconds_a_round"], mine["kibibytes"] / its["kibibytes"]


def _winner(results: Results, name: str, lines: Sequence[Line]) -> str:
    best = lines[0]
    tied = [line for line in lines if f"{_regret(line):.1f}" == f"{_regret(best):.1f}"]
    worst = max(line["worst"] for line in tied)
    text = (
        f"{_listed([line['label'] for line in tied])} {'have' if len(tied) > 1 else 'has'} the least regret: "
        f"{_regret(best):.1f} on average, {worst:.1f} at worst"
    )
    if len(tied) > 1 and not _is_surely_more(tied[-1], best):
        text += f", too close for {_runs(best)} to tell apart"
    if len(lines) > len(tied):
        second = lines[len(tied)]
        text += f"; {second['label']} follows with {_regret(second):.1f}"
        if not _is_surely_more(second, best):
            text += f", too close for {_runs(best)} to tell apart"
    if any(is_chance(member) for _, members in results.series(name) for member in members):
        text += f". A uniform choice has {_chance(results, name):,.1f}"
    return text + "."


def _seeds(line: Line) -> str:
    return f"{line['permutations']} seed{'s' * (line['permutations'] > 1)}"


def _runs(line: Line) -> str:
    return f"{line['permutations']} run{'s' * (line['permutations'] > 1)}"


def _is_surely_more(one: Line, other: Line) -> bool:
    """Whether the paired difference of the regrets is positive with 95 % confidence."""
    if len(one["regrets"]) != len(other["regrets"]):
        return False
    found = estimate(one["regrets"] - other["regrets"])
    return bool(found.mean - found.half > 0.0)


def _costs(lines: Sequence[Line]) -> str:
    """The cheapest beside the dearest, in time and in memory."""
    time, memory = (_cheapest(lines, what) for what in ("seconds_a_round", "kibibytes"))
    if time.least == memory.least and time.beside and memory.beside:
        return f"{time.who} the least time ({time.beside}) and the least memory ({memory.beside})."
    return f"{_said(time, 'time')} {_said(memory, 'memory')}"


class _Cheapest(NamedTuple):
    """Who needs the least, and beside them who needs the most; nothing where all need about the same."""

    least: tuple[str, ...]
    beside: str

    @property
    def who(self) -> str:
        return f"{_listed(self.least)} {'take' if len(self.least) > 1 else 'takes'}"


def _cheapest(lines: Sequence[Line], what: str) -> _Cheapest:
    """Who needs the least, and how many times that who needs the most."""
    in_order = sorted(lines, key=itemgetter(what))
    least, most = in_order[0], in_order[-1]
    alike = [line for line in in_order if round(line[what] / least[what], 1) <= 1.0]
    times = f"{most['label']}: {most[what] / least[what]:.1f} times as much"
    beside = times if len(alike) < len(lines) else ""
    return _Cheapest(tuple(line["label"] for line in alike), beside)


def _said(found: _Cheapest, what: str) -> str:
    if not found.beside:
        return f"All take about the same {what}."
    return f"{found.who} the least {what} ({found.beside})."


def _listed(names: Sequence[str]) -> str:
    """a, b and c."""
    return " and ".join(filter(None, [", ".join(names[:-1]), names[-1]]))


def _chance(results: Results, name: str) -> float:
    return results.final(name, UNIFORM).mean


def _labelled(lines: Sequence[Line], label: str) -> Line:
    (found,) = [line for line in lines if line["label"] == label]
    return found


def _name(line: Line) -> str:
    """Its label without what stands in brackets."""
    return str(line["label"]).partition(" (")[0]
