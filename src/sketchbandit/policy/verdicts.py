"""The sentences of ``policy.health()``."""

import math
from collections.abc import Sequence
from typing import Any

from sketchbandit.html_repr import amount
from sketchbandit.sketch import Sketch

_TRY = "To try everything now and then, give the rule a floor, for instance floor=0.02."
_SHOWN = 10  # arms in a sentence
_ROUNDS_A_CHOICE, _FEW_CHOICES = 50, 4
_SMALL = 128  # columns up to which an exact matrix needs no comment


def digits_sentence(sketch: Sketch, ridge: float) -> str:
    """The sentence if the dtype has too few digits; empty if it has enough."""
    error, most = sketch.error_bound, sketch.error_limit
    certified = sketch.rounding
    rounding = sketch.uncounted
    name, remedy = "float64", ""
    if certified > max(ridge, error / 2.0):  # the certificate is mostly rounding
        name, rounding = sketch.dtype.name, certified
        remedy = ", or use float64" if name == "float32" else ""
    elif rounding <= max(error, ridge) and (most == 0.0 or rounding <= most):
        return ""
    beside = f"the ridge, {ridge:.4g}" if rounding > ridge else f"the error that is promised, {most:.4g}"
    return (
        f"The arms are too long for {name}: rounding alone may change the sum of their squares by "
        f"{rounding:.4g}. This is more than {beside}, so neither the error bound nor the radius is reliable. "
        f"Scale the columns to similar lengths of about one{remedy}."
    )


def bounded_sentence(sketch: Sketch, error: float, most: float) -> str:
    """The sentence for an error that is bounded."""
    if most == 0.0:
        return "The sketch is exact: it loses nothing, so it adds no regret."
    so_far = f"at most {error:.4g}" if error else "0 so far"
    return (
        f"The spectral error is {so_far} and never exceeds {most:.4g}: "
        "the regret bound of UCB stays sublinear." + _said_of_matrix(sketch)
    )


def _said_of_matrix(sketch: Sketch) -> str:
    """What to add for a bounded error if the sketch has become a large matrix."""
    if not sketch.is_dense or sketch.dim <= _SMALL:
        return ""
    could_say = getattr(sketch, "horizon", 0) is None and getattr(sketch, "order", None) is None
    return (
        " To keep this bound the sketch has become exact, a matrix of dim² numbers "
        f"({amount(sketch.nbytes)}). To use less memory, allow a larger "
        f"epsilon{' (or inflation), or give the horizon' if could_say else ''}."
    )


def growing_sentence(error: float, order: float) -> str:
    """The sentence for an error that grows slowly enough."""
    return (
        f"The spectral error is at most {error:.4g} and grows no faster than t^{order:.3g}: "
        "the regret bound of UCB stays sublinear."
    )


def world_sentence(noticed: int) -> str:
    """The sentence for predictions that have become worse."""
    return (
        f"The world has changed, noticed after {noticed} rounds: predictions have become worse than before, "
        "by more than noise and confidence widths explain. Start again with policy.reset(), or make the "
        "policy with forget=, for instance forget=1000, a half-life in rounds."
    )


def following_sentence(noticed: int) -> str:
    """The sentence for worse predictions if the policy forgets."""
    return f"The world has changed, noticed after {noticed} rounds. The policy forgets, so it adapts."


def offset_sentence(mean: float, deviation: float) -> str:
    """The sentence for rewards that are far from 0, if they are learned as they are."""
    return (
        f"Rewards lie around {mean:.4g}, with a deviation of only {deviation:.4g}. This policy expects 0 of "
        "an arm that it has not tried, so learning is slow. Make it with baseline=True, or subtract a "
        "typical reward."
    )


def are_enough_to_try(rounds: int, choices: int) -> bool:
    """Whether so many rounds among so many choices are enough to say that one of these was not tried."""
    return rounds >= _ROUNDS_A_CHOICE * max(choices, _FEW_CHOICES)


def untried_action_sentence(action: Any, times: int, rounds: int) -> str:
    """The sentence for an action that was hardly ever tried."""
    tried = f"tried {times} time{'s' * (times != 1)}" if times else "never tried"
    known = "little of its rewards is known" if times else "its rewards are not known"
    return f"Action {action!r} was {tried} in the {rounds:,} rounds since it was added: {known}. {_TRY}"


def untried_arms_sentence(arms: Sequence[object], rounds: int) -> str:
    """The sentence for arms about which next to nothing is known."""
    shown = ", ".join(map(str, arms[:_SHOWN])) + (f" and {len(arms) - _SHOWN} more" * (len(arms) > _SHOWN))
    return f"In {rounds:,} rounds these arms, or any like them, were hardly ever tried: {shown}. {_TRY}"


def out_of_range_sentence(columns: Sequence[Any], dim: int) -> str:
    """The sentence for columns that have left the range in which their scaling was learned."""
    return (
        f"{_counted(columns, dim)} far outside the range that the scaling was learned from: "
        f"{_listed(columns)}. What lies outside is cut, so to the policy they are constant. Give features "
        "that keep their range (an age instead of a date), or make a new policy, which learns a new scaling."
    )


def dropped_sentence(columns: Sequence[Any]) -> str:
    """The sentence for columns whose offset leaves no digits for how they vary."""
    return (
        f"Columns that vary too little beside their size for float64 are taken as constant: "
        f"{_listed(columns)}. Subtract a typical value from them before you offer the arms."
    )


def _counted(columns: Sequence[Any], dim: int) -> str:
    return f"{len(columns)} of {dim:,} columns {'lies' if len(columns) == 1 else 'lie'}"


def _listed(names: Sequence[Any]) -> str:
    more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    return ", ".join(map(repr, names[:_SHOWN])) + more


def forgetting_sentence(sketch: Sketch, error: float, most: float) -> str:
    """The sentence for a policy that forgets. Sublinear regret is not promised: the memory is bounded."""
    remembered = f"{sketch.effective_count:.4g} rounds are remembered"
    if most == 0.0:
        return f"The sketch is exact, and {remembered}."
    if most < math.inf:
        said = f"The spectral error is at most {error:.4g} and never exceeds {most:.4g}; {remembered}."
        return said + _said_of_matrix(sketch)
    return (
        f"The spectral error of {_named(sketch)} is at most {error:.4g}; {remembered}. The error stays "
        "bounded, because old rounds are forgotten."
    )


def too_small(sketch: Sketch, error: float) -> str:
    """The sentence for a sketch so small that the regret bound is linear."""
    return (
        f"{_named(sketch)} is too small for this stream: its spectral error, {error:.4g}, grows so fast that "
        "the regret bound is linear. Use a larger size, or adaptive, whose error is bounded. Also scale the "
        "arms to length one or so, or set the ridge to about their squared length."
    )


def slowly_linear(sketch: Sketch, error: float, rounds: int) -> str:
    """The sentence for a regret bound that is linear with a small factor."""
    return (
        f"The spectral error of {_named(sketch)}, {error:.4g}, grows in proportion to t, by "
        f"{error / rounds:.2g} a round. The regret bound is linear, but with a small factor. A larger size "
        "lowers the error, and adaptive bounds it."
    )


def bearable(sketch: Sketch, error: float, exponent: float) -> str:
    """The sentence for an error that the regret bound can bear so far."""
    if error == 0.0:
        return f"{_named(sketch)} has lost nothing so far, so it adds no regret."
    return (
        f"{_named(sketch)} has lost at most {error:.4g} (t^{exponent:.2f}), which the regret bound can bear."
    )


def _named(sketch: Sketch) -> str:
    return f"{type(sketch).__name__} of size {sketch.size}"
