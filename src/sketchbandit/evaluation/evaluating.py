"""What fixed policies would have earned."""

from collections.abc import Mapping, Sequence
from typing import Any

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
    """What policies that learn nothing more would have earned a decision, had they made the log.

    A policy that has learned from rows of this log is refused: ``train_and_judge`` learns from some rows and
    judges by others. What a policy earns *while it learns* is another question: ``replay``.

    Parameters
    ----------
    log : Log
        What was logged.
    policies : dict
        By name: a policy of ours, its whole rule counted; a function from arms (arms, dim) to probabilities
        (``Batched``: from many sets at once); an array of probabilities, (decisions, arms) or (arms,);
        "uniform".
    methods : sequence of str
        "dm", "ips", "clipped", "snips", "dr", "switch-dr", "drs", "drs-pessimistic".
    tell : callable, optional
        Hears how many decisions more are done.
    model : "ridge", Ridge, scikit-learn estimator, or function
        Of the rewards, for "dm" and the doubly robust. A function of rows (n, dim) is taken as it is; all
        else is cross-fitted.
    folds : int or "past"
        For the model: parts of the log, each predicted by a model of the others (3); or of the rows before.
    interval : "normal", "bootstrap" or "anytime"
        The first two hold for a log whose length was fixed beforehand. "anytime" holds however often one
        looks and whenever one stops; for "ips", and for "dr" with ``max_weight``.
    level : float
        How sure, 0.95.
    reward_range : (float, float)
        For "anytime": the range that no reward leaves; (0, 1) where rewards lie there.
    max_weight : float
        For "anytime" with "dr": what no weight can exceed, K/floor for a log with a floor.
    draws, seed : int
        Of the bootstrap, 1,000 and 0.

    Returns
    -------
    Evaluation
        Rows Estimate(policy, method, value, low, high, effective_size).

    Examples
    --------
    >>> import numpy as np
    >>> random = np.random.default_rng(0)
    >>> arms = random.standard_normal((4000, 5, 3))
    >>> chosen = random.integers(5, size=4000)
    >>> reward = 1.0 + arms[np.arange(4000), chosen] @ [0.3, -0.1, 0.2]
    >>> log = Log(arms=arms, chosen=chosen, reward=reward, probability=np.full(4000, 0.2))
    >>> evaluate(log, {"first": lambda arms: [1, 0, 0, 0, 0], "uniform": "uniform"}, methods=("snips", "dr"))
    policy   method  value   95% interval      effective size
    logged   mean    0.9958  0.9841 to 1.008   4,000
    first    snips   0.9767  0.9513 to 1.002   825
    first    dr      0.9874  0.9759 to 0.9989  825
    uniform  snips   0.9958  0.9841 to 1.008   4,000
    uniform  dr      1       0.9952 to 1.006   4,000

    """
    chosen = Settings(methods=tuple([methods] if isinstance(methods, str) else methods), **settings)
    candidates = candidates_of(log, policies)
    limits = chosen.range_of(log) if chosen.interval == "anytime" else None
    models = fit(log, chosen.model, chosen.how_folded) if chosen.needs_model else None
    return conclude(log, terms_of(log, candidates, models, limits=limits, tell=tell), chosen)
