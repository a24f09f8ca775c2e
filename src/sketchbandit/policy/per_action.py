"""One model per action: the disjoint setting."""

import copy
import math
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from sketchbandit.arms import is_scalar, read_reward, read_rewards
from sketchbandit.arrays import Vector
from sketchbandit.errors import InputError, InputTypeError, RowError
from sketchbandit.explore import ActionChoice
from sketchbandit.policy.action_names import Action, made_by, read_names
from sketchbandit.policy.action_ranking import ActionRanking
from sketchbandit.policy.forgetting import Clock
from sketchbandit.policy.health import Complaints, say
from sketchbandit.policy.learning import Policy
from sketchbandit.sketch.columns import ColumnNames
from sketchbandit.thread_safety import holds_the_lock


class PerAction(ActionRanking):
    """One model per action (disjoint LinUCB): every action scores the same context with a model of its own.

    The models are disjoint: rewards of one action say nothing about another, except for their mean. The
    models learn from rewards less the mean of all of them, the baseline. So an action without data has the
    mean of all rewards and the width of the prior, and is tried soon. If actions have features of their own,
    one policy over arms learns faster.

    With ``forget``, every round makes all models forget, whichever action it was. So an abandoned action is
    tried again after a while.

    ``merge`` adds up the actions that both sides have. Actions that only the other side has are copied, with
    their state (offered or retired). After a merge, models taken from ``policies`` before are out of date.

    Threads may share one instance: every public call is atomic.

    Parameters
    ----------
    actions : list of str or int
        The names of the actions.
    factory : callable
        A function without arguments that returns a fresh policy. It is called once. Every action gets a copy,
        also an action that is added later. The exploration rule of that policy, and its seed, serve all
        actions together. Its ``baseline`` is on unless it is False or the radius is a ``Confidence``.

    Examples
    --------
    >>> import sketchbandit as sb
    >>> models = sb.PerAction(["red", "green"], lambda: sb.oful(3))
    >>> context = [1.0, 0.5, 0.0]
    >>> models.select(context)
    'red'
    >>> models.update(context, "red", -1.0)
    >>> models.select(context)
    'green'
    >>> models.add("blue")
    >>> models.mean(context)
    array([-1., -1., -1.])
    >>> models.width(context).round(2)
    array([0.75, 1.12, 1.12])

    """

    kind = "per-action"

    def __init__(self, actions: Iterable[Action], factory: Callable[[], Policy]) -> None:
        names = read_names(actions)
        template = copy.deepcopy(made_by(factory))
        template._default_to_baseline()
        self._set_up(template, {name: copy.deepcopy(template) for name in names}, set(), ColumnNames())

    # -- learning -----------------------------------------------------------------------------------

    @holds_the_lock
    def update(self, context: Any, action: Any, reward: Any) -> None:
        """Learn from a context, the action taken and its reward, or from n of each.

        Retired actions learn too, because rewards may come late.

        Parameters
        ----------
        context : array of shape (dim,) or (n, dim)
            The features of the context.
        action : str or int, or a list of n
            The name of the action taken.
        reward : float or array of shape (n,)
            The observed reward.

        Warns
        -----
        SketchTooSmallWarning, TooFewDigitsWarning, WorldChangedWarning
            Given after everything is learned.

        Raises
        ------
        InputError
            If an input cannot be used. Then nothing has changed.

        """
        with self._lock:
            complaints = self._learn(context, action, reward)
        if complaints:
            say(complaints)

    def _learn(self, context: Any, action: Any, reward: Any) -> Complaints:
        if (  # the fast path
            type(context) is np.ndarray
            and isinstance(reward, float)
            and context.dtype == self._dtype
            and context.shape == self._plain_shape
            and context.flags.c_contiguous
            and type(action) in _NAMES
            and action in self._models
            and not self._is_warming
        ):
            policy = self._models[action]
            if self._clock is not None and math.isfinite(reward) and np.isfinite(context).all():
                policy._forget_until(self._now)
            complaints = _said_of(action, policy._learn(context, reward))
            if self._clock is not None:
                self._count_up(policy, self._clock)
            return complaints
        if isinstance(action, ActionChoice):
            raise InputTypeError("the action is an ActionChoice: give its name, choice.action")
        if is_scalar(action):
            name = self._known(action)
            source = self._source(context)
            if source.shape[0] != 1:
                raise InputError(f"{source.shape[0]} contexts need as many actions, got one: {name!r}")
            value = read_reward(reward)
            if self._is_warming or self._clock is not None:
                complaints = self._learn_many(source, [name], [value])
            else:
                complaints = _said_of(name, self._models[name]._learn_any(source, value))
        else:
            complaints = self._learn_many(context, action, reward)
        self._columns.remember(context)
        return complaints

    def _learn_many(self, contexts: Any, actions: Any, rewards: Any) -> Complaints:
        """Check everything, then let each model learn its own part, in order."""
        source, names = self._source(contexts), [self._known(action) for action in actions]
        if len(names) != source.shape[0]:
            raise InputError(f"{source.shape[0]} contexts need {source.shape[0]} actions, got {len(names)}")
        values = read_rewards(rewards, len(names))
        places: dict[Action, list[int]] = {}
        for place, name in enumerate(names):
            places.setdefault(name, []).append(place)
        parts = [(name, self._models[name], source[some], values[some]) for name, some in places.items()]
        for name, policy, rows, mine in parts:
            try:
                policy._check_many(policy._read_rows(rows), mine)
            except RowError as error:  # its row number counts within the action's part
                why = error.why.replace("arms", "contexts")
                raise RowError("context", places[name][error.row], why) from error
        if self._is_warming:
            return self._learn_warming_up(source, names, values)
        complaints: Complaints = ()
        if self._in_order:
            for place, name in enumerate(names):
                policy = self._models[name]
                policy._forget_until(self._now)
                complaints += _said_of(name, policy._learn_any(source[[place]], float(values[place])))
                self._count_up(policy, self._clock)
            return complaints
        for name, policy, rows, mine in parts:
            complaints += _said_of(name, policy._learn_any(rows, mine))
        return complaints

    @property
    def _in_order(self) -> bool:
        """Whether what models learn depends on the order of rounds of different actions."""
        template = self._template
        return self._clock is not None or (template._has_baseline and template._estimate.weighs)

    def _count_up(self, policy: Policy, clock: Clock | None) -> None:
        """Count a round that a model has learned, and forget where that is due."""
        if clock is None or policy._clock is None:
            return
        self._now += 1
        policy._clock.seen = self._now
        clock.since += 1
        if clock.rounds_left(self._now) <= 0:
            self._reward_scale.forget(clock.strike(self._now))
        if self._now >= self._next_sweep:
            self._sweep()

    def _sweep(self) -> None:
        """Let all models forget whose forgetting is due, though they learn nothing."""
        waits = []
        for policy in self._models.values():
            clock = policy._clock
            if clock is None or policy.sketch.mass <= _FORGOTTEN * policy.ridge:
                continue
            policy._forget_until(self._now)
            waits.append(clock.rounds_left(self._now))
        self._next_sweep = self._now + max(1, min(waits, default=1))

    def _learn_warming_up(self, source: Any, names: list[Action], rewards: Vector) -> Complaints:
        """Learn one by one until the warm-up is over. Everything was checked before."""
        complaints: Complaints = ()
        kept = 0
        for row in self._to_be_kept(source):
            name, policy = names[kept], self._models[names[kept]]
            policy._forget_until(self._now)
            at = None if self._clock is None else self._now
            complaints += _said_of(name, policy._learn_and_keep(row, float(rewards[kept]), at))
            self._count_up(policy, self._clock)
            kept += 1
        if kept < len(names):
            complaints += self._learn_many(source[kept:], names[kept:], rewards[kept:])
        return complaints

    # -- merging ------------------------------------------------------------------------------------

    def _absorb(self, other: "PerAction") -> Complaints:
        """Merge on copies, so that all of it is done or nothing."""
        copy.deepcopy(self._template)._absorb(other._template)  # raises with the setting that differs
        self._check_same_scaling(other)
        columns = self._columns.merged(other._columns)
        scale = copy.deepcopy(self._reward_scale)
        scale.add(other._reward_scale)
        models = dict(self._models)
        complaints: Complaints = ()
        for name, given in other._models.items():
            theirs = _up_to_date(given, other._now)
            if self._clock is not None:  # then it is a copy
                theirs._kept = [one.later(self._now - other._now) for one in theirs._kept]
            if name in models:
                models[name] = copy.deepcopy(_up_to_date(models[name], self._now))
                models[name]._estimate.reward_scale = scale
                complaints += _said_of(name, models[name]._absorb(theirs))
            else:
                models[name] = copy.deepcopy(theirs)
                models[name]._estimate.reward_scale = scale
                models[name]._estimate.move_origin(scale.origin - other._reward_scale.origin)
        self._retired |= {name for name in other._retired if name not in self._models}
        self._models, self._columns, self._reward_scale = models, columns, scale
        self._added_at = {name: self._added_at.get(name, 0) + other._added_at.get(name, 0) for name in models}
        self._join(self._template, *models.values())
        self._merge_warm_up(other)
        return complaints


_NAMES = (str, int)
_FORGOTTEN = 1e-12  # times the ridge: a model with so little mass has nothing left to forget


def _up_to_date(policy: Policy, now: int) -> Policy:
    """The model, or a copy of it if it forgets, whose clock counts the rounds of the others up to now."""
    if policy._clock is None:
        return policy
    made = copy.deepcopy(policy)
    assert made._clock is not None  # noqa: S101  (for the type checker)
    made._clock.follow(now)
    made._clock.seen = None  # that of another ``PerAction`` has rounds of its own
    return made


def _said_of(action: Action, complaints: Complaints) -> Complaints:
    if not complaints:  # most rounds
        return complaints
    return tuple(type(complaint)(f"action {action!r}: {complaint}") for complaint in complaints)
