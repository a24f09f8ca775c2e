"""The lines of a figure: a method looks the same in all of them."""

from typing import NamedTuple

from sketchbandit.drawing import Look, looks
from sketchbandit.simulation.policies import family
from sketchbandit.simulation.rules import RULE
from sketchbandit.simulation.specs import UNIFORM_TITLE, Spec
from sketchbandit_paper.results import Results

_ADAPTIVE = Look("#009E73", "P")
_LOOKS = {
    "OFUL": Look("#000000", "*", area=120),
    "CBRAP": Look("#CC79A7", "v"),
    "SOFUL": Look("#E69F00", "s"),
    "CBSCFD": Look("#56B4E9", "^"),
    "DBSLinUCB-FD": Look("#D55E00", "D"),
    "DBSLinUCB-RFD": Look("#0072B2", "o"),
    "Adaptive": _ADAPTIVE,
    "Adaptive, anytime": _ADAPTIVE,
    UNIFORM_TITLE: Look("#7F7F7F", "o"),
}
_RULE_LOOKS = {
    "thompson": Look("#0072B2", "o"),
    "inverse-gap": Look("#D55E00", "D"),
    "epsilon-greedy": Look("#CC79A7", "v"),
    "greedy": Look("#000000", "s"),
}


class Line(NamedTuple):
    """A series with those of its members that have results."""

    label: str
    members: list[Spec]
    look: Look


def lines_of(results: Results, name: str) -> list[Line]:
    """Every line of an experiment, in the look of its method or rule or, if it says so, in its own."""
    series = list(results.series(name))
    own = results.experiments[name].own_colours
    given = [None if own else _look(members[0]) for _, members in series]
    return [Line(*one, look) for one, look in zip(series, looks(given), strict=True)]


def _look(policy: Spec) -> Look | None:
    """That of its rule, unless the rule is UCB; then that of its method."""
    return _RULE_LOOKS.get(str(policy.get(RULE))) or _LOOKS.get(family(policy))
