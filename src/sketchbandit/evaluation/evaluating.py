"""Evaluation of fixed policies."""

from collections.abc import Mapping, Sequence
from typing import Any

from sketchbandit.evaluation.blas import one_blas_thread
from sketchbandit.evaluation.candidates import candidates_of
from sketchbandit.evaluation.concluding import conclude
from sketchbandit.evaluation.evaluation import Evaluation
from sketchbandit.evaluation.log import Log
from sketchbandit.evaluation.models import fit
from sketchbandit.evaluation.settings import Settings
from sketchbandit.evaluation.terms import Tell, terms_of


def evaluate(
    log: Log,
    policies: Mapping[str, Any],
    methods: Sequence[str] = ("ips", "snips", "dr"),
    *,
    tell: Tell = lambda _: None,
    **settings: Any,
) -> Evaluation:
    """Estimate the mean reward per decision of fixed policies, had they made the decisions of the log.

    The policies learn nothing more. A policy that has learned from rows of this log is refused; use
    ``train_and_judge``, which learns from some rows and judges on others. What a policy earns *while it
    learns* is another question; use ``replay``.

    Parameters
    ----------
    log : Log
        The logged decisions.
    policies : dict
        The candidates by name. A candidate is a policy, with its exploration rule. Or a function from arms
        (arms, dim) to probabilities (``Batched``: for many sets at once). Or an array of probabilities,
        (decisions, arms) or (arms,). Or "uniform". Or the name of an action: always this one.
    methods : sequence of str
        The estimators: "dm", "ips", "clipped", "snips", "dr", "switch-dr", "drs", "drs-pessimistic".
    tell : callable, optional
        Called with the number of further decisions done, for a progress bar.
    model : "ridge", Ridge, scikit-learn estimator, or function
        The reward model for "dm" and the doubly robust methods. A function of rows (n, dim) is used as it is.
        All others are cross-fitted.
    folds : int or "past"
        How the reward model is cross-fitted. An int: the log is cut into so many parts, and each is predicted
        by a model of the others. "past": each row is predicted by a model of rows before it. Default 3.
    interval : {"bounded", "normal", "bootstrap", "anytime"}
        The kind of confidence interval. The first three are for a log whose length was fixed in advance.
        "bounded", the default, holds for rare rewards and heavy weights too (docs/coverage.md has its
        coverage); "normal" and "bootstrap" do not. "anytime" holds however often one looks and whenever one
        stops. It exists for "ips", and for "dr" with ``max_weight``.
    level : float
        The confidence level. Default 0.95.
    reward_range : (float, float)
        The smallest and largest possible reward. Default: for "bounded" those in the log; for "anytime"
        (0, 1), if all rewards are in it.
    max_weight : float
        An upper bound on all weights. For a log with a floor it is K/floor. "anytime" with "dr" needs it.
        Default for "bounded": the mean weight of decisions as the candidate makes them, (Σ w²)/(Σ w), or that
        of the heaviest if few decisions carry the sum.
    draws, seed : int
        The number of bootstrap samples, and their seed. Default 1,000 and 0.

    Returns
    -------
    Evaluation
        A sequence of rows ``Estimate(policy, method, value, low, high, effective_size)``.

    Examples
    --------
    >>> import numpy as np
    >>> random = np.random.default_rng(0)
    >>> arms = random.standard_normal((4000, 5, 3))
    >>> chosen = random.integers(5, size=4000)
    >>> reward = 1.0 + arms[np.arange(4000), chosen] @ [0.3, -0.1, 0.2]
    >>> log = Log(arms=arms, chosen=chosen, reward=reward, probability=np.full(4000, 0.2))
    >>> evaluate(log, {"first": lambda arms: [1, 0, 0, 0, 0], "uniform": "uniform"}, methods=("snips", "dr"))
    policy   method  value  95% interval    effective size
    logged   mean    0.996  0.984 to 1.008  4,000
    first    snips   0.977  0.951 to 1.002  825
    first    dr      0.987  0.976 to 0.999  825
    uniform  snips   0.996  0.984 to 1.008  4,000
    uniform  dr      1.000  0.995 to 1.006  4,000

    """
    chosen = Settings(methods=tuple([methods] if isinstance(methods, str) else methods), **settings)
    candidates = candidates_of(log, policies)
    limits = chosen.range_of(log) if chosen.interval == "anytime" else None
    with one_blas_thread():
        models = fit(log, chosen.model, chosen.how_folded) if chosen.needs_model else None
        return conclude(log, terms_of(log, candidates, models, limits=limits, tell=tell), chosen)
