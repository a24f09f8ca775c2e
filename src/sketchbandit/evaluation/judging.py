"""Policies that learn from one part of a log and are judged on another part."""

from collections.abc import Mapping, Sequence
from inspect import signature
from itertools import pairwise
from typing import Any

import numpy as np

from sketchbandit.errors import InputError, InputTypeError
from sketchbandit.evaluation.blas import one_blas_thread
from sketchbandit.evaluation.candidates import candidates_of
from sketchbandit.evaluation.concluding import conclude
from sketchbandit.evaluation.evaluation import Evaluation
from sketchbandit.evaluation.log import Log
from sketchbandit.evaluation.models import fit
from sketchbandit.evaluation.seen import train
from sketchbandit.evaluation.settings import Settings
from sketchbandit.evaluation.terms import Tell, Terms, terms_of
from sketchbandit.sketch.checks import check_count


def train_and_judge(
    log: Log,
    makers: Mapping[str, Any],
    methods: Sequence[str] = ("ips", "snips", "dr"),
    *,
    split: float | None = None,
    parts: int | None = None,
    tell: Tell = lambda _: None,
    **settings: Any,
) -> Evaluation:
    """Estimate the mean reward of policies that learn from one part of the log, on another part.

    Parameters
    ----------
    log : Log
        The logged decisions.
    makers : dict
        By name, a function without arguments that returns a fresh policy. "uniform" can be added:
        ``{"mine": lambda: sb.adaptive(20), "uniform": "uniform"}``.
    methods : sequence of str
        As for ``evaluate``.
    split : float, optional
        The share at the beginning of the log to learn from. The rest is for judging. Default 0.5, unless
        ``parts`` is given.
    parts : int, optional
        Use instead of a split. The log is cut into so many parts. Each part judges policies that have learned
        from all others. So every row is used for judging, and the policies judged have learned from
        (parts - 1)/parts of the log. They also see rows that come after those they are judged on, so use it
        for logs in which time does not matter.
    tell, settings
        As for ``evaluate``.

    Returns
    -------
    Evaluation
        As for ``evaluate``.

    Examples
    --------
    >>> import sketchbandit as sb
    >>> random = np.random.default_rng(0)
    >>> arms, chosen = random.standard_normal((2000, 5, 3)), random.integers(5, size=2000)
    >>> reward = arms[np.arange(2000), chosen] @ [0.3, -0.1, 0.2]
    >>> log = Log(arms=arms, chosen=chosen, reward=reward, probability=np.full(2000, 0.2))
    >>> found = train_and_judge(log, {"oful": lambda: sb.oful(3)}, methods=("snips",))
    >>> found.difference("oful").is_clear
    True

    """
    chosen = Settings(methods=tuple([methods] if isinstance(methods, str) else methods), **settings)
    with one_blas_thread():
        judging, terms = judged(log, makers, chosen, split=split, parts=parts, tell=tell)
        return conclude(judging, terms, chosen)


def judged(
    log: Log,
    makers: Mapping[str, Any],
    settings: Settings,
    *,
    split: float | None = None,
    parts: int | None = None,
    tell: Tell = lambda _: None,
) -> tuple[Log, dict[str, Terms]]:
    """The rows used for judging, and the terms of every candidate on them."""
    if not isinstance(makers, Mapping) or not makers:
        raise InputTypeError(
            f'makers must be a dict by name, {{"mine": lambda: sb.adaptive(20)}}, got {makers!r:.60}'
        )
    judging = judging_rows(log, settings, split=split, parts=parts)
    if parts is None:
        past = log.part(0, judging.start - log.start)
        return judging, _terms(judging, [past], makers, settings, tell)
    ends = [len(log) * number // parts for number in range(parts + 1)]
    found = [
        _terms(log.part(start, stop), _others(log, start, stop), makers, settings, tell)
        for start, stop in pairwise(ends)
    ]
    return judging, {name: _joined([part[name] for part in found]) for name in makers}


def judging_rows(
    log: Log, settings: Settings, *, split: float | None = None, parts: int | None = None
) -> Log:
    """The rows used for judging: those after the split, or all."""
    if parts is None:
        return log.split(0.5 if split is None else split)[1]
    if split is not None:
        raise InputError("split learns from the beginning, parts from all other parts; give only one of them")
    if settings.interval == "anytime":
        raise InputError(
            "any-time intervals need policies that learned from earlier rows; give split instead of parts"
        )
    if check_count("parts", parts, at_least=2) > len(log):
        raise InputError(f"{len(log)} decisions cannot be cut into {parts} parts; give fewer parts")
    return log


def _terms(
    log: Log, learned: Sequence[Log], makers: Mapping[str, Any], settings: Settings, tell: Tell
) -> dict[str, Terms]:
    """The terms of fresh policies on a log, after they have learned from others."""
    policies = {name: _made(name, given, learned) for name, given in makers.items()}
    models = fit(log, settings.model, settings.how_folded) if settings.needs_model else None
    limits = settings.range_of(log) if settings.interval == "anytime" else None
    return terms_of(log, candidates_of(log, policies), models, limits=limits, tell=tell)


def _made(name: str, given: Any, learned: Sequence[Log]) -> Any:
    """A fresh policy that has learned. Anything that is not a maker is returned as it is."""
    if hasattr(given, "probabilities"):
        raise InputTypeError(
            f"{name} is a policy, not a maker; give a function that returns a fresh policy, or judge this "
            "policy with evaluate"
        )
    if not callable(given) or isinstance(given, tuple):
        return given
    try:
        signature(given).bind()
    except TypeError as error:
        raise InputTypeError(
            f"{name}: a maker takes no arguments and returns a policy; judge something that does not learn "
            "with evaluate, or give it here as Batched(function)"
        ) from error
    fresh = given()
    if not hasattr(fresh, "update"):
        raise InputTypeError(f"{name}: the maker must return a policy, got {type(fresh).__name__}")
    if getattr(fresh, "rounds", 0):
        raise InputError(
            f"{name}: the maker returned a policy that has learned {fresh.rounds} rewards; return a fresh one"
        )
    return train(fresh, *learned)


def _others(log: Log, start: int, stop: int) -> list[Log]:
    ranges = [(0, start), (stop, len(log))]
    return [log.part(first, last) for first, last in ranges if first < last]


def _joined(parts: Sequence[Terms]) -> Terms:
    """Concatenate the terms of one candidate over the parts."""
    reward, weight, predicted, value = (
        np.concatenate([getattr(part, name) for part in parts])
        for name in ("reward", "weight", "predicted", "value")
    )
    unlogged = sum(part.unlogged * len(part) for part in parts) / len(reward)
    return Terms(reward, weight, predicted, value, unlogged)
