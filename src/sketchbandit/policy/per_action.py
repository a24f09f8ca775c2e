"""One model per action: the disjoint setting."""

import copy
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Self, SupportsIndex, TypeVar

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse

from sketchbandit.arms import Arms, is_scalar, is_vector, read_reward, read_rewards
from sketchbandit.arrays import Arrays, Matrix, Rows, RowsLike, Scalars, Vector, taken_from
from sketchbandit.errors import FileError, InputError, InputTypeError, RowError
from sketchbandit.explore import ActionChoice, Choice, Explore, Ranking, Scores
from sketchbandit.features import Scaling
from sketchbandit.html_repr import Facts, amount, certificate
from sketchbandit.policy.actions import (
    Action,
    ActionCandidates,
    ActionChoices,
    Board,
    Roster,
    check_action,
    made_by,
    read_names,
    search,
    some_of,
)
from sketchbandit.policy.chooser import Chooser, Random
from sketchbandit.policy.health import Complaints, Health, are_enough_to_try, say, untried_action_sentence
from sketchbandit.policy.learner import POLICIES, Learner, Part, content_of, copy_of_rule
from sketchbandit.policy.policy import LinUCB
from sketchbandit.policy.posterior import Clock
from sketchbandit.sketch.checks import check_count
from sketchbandit.sketch.row_input import ColumnNames, complaint, row_source
from sketchbandit.thread_safety import holds_the_lock

T = TypeVar("T")

_NAMES = (str, int)
_SHOWN = 20  # actions in a notebook
_HARDLY = 2  # rewards: an action with no more was (nearly) never tried
_FORGOTTEN = 1e-12  # times the ridge: a model with so little mass has nothing left to forget


class PerAction(Learner):
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
    _scratch = ("_everything",)

    def __init__(self, actions: Iterable[Action], factory: Callable[[], LinUCB]) -> None:
        names = read_names(actions)
        template = copy.deepcopy(made_by(factory))
        template._default_to_baseline()
        template._features.names = ColumnNames()
        self._set_up(template, {name: copy.deepcopy(template) for name in names}, set())

    def _set_up(self, template: LinUCB, models: dict[Action, LinUCB], retired: set[Action]) -> None:
        self._template, self._models, self._retired = template, models, retired
        self._features, self._reward_scale = template._features, template._posterior.scale
        self._chooser = Chooser(template._chooser.rule)
        self._added_at = dict.fromkeys(models, 0)
        """The number of rounds when an action was added."""
        self._now = 0
        """The round of the clock by which all models forget."""
        self._clock = None if template.forget is None else Clock(template.forget)
        """The clock of the reward scale. None: nothing is forgotten, or each model has a clock of its own."""
        self._lock = self._make_lock()
        self._join(template, *models.values())

    def _join(self, *policies: LinUCB) -> None:
        """Share lock, features and reward scale with these models. The set on offer has changed."""
        initial = self._template._warm_up.initial
        for policy in policies:
            policy._become_part(self._lock, self._features, self._reward_scale, initial)
            policy._posterior.count_from(self._now)
        self._next_sweep = self._now
        self._everything: Roster | None = None

    def _explore_by(self, rule: Explore) -> None:
        """Give all models the same rule."""
        for policy in self._all_models:
            policy._explore_by(copy_of_rule(rule))
        self._chooser.explore_by(self._template._chooser.rule)
        self._join()

    @property
    def _all_models(self) -> tuple[LinUCB, ...]:
        """The models of all actions, and the template of those to come."""
        return (self._template, *self._models.values())

    def _forget_apart(self) -> None:
        """Let each model forget by its own rounds, as in 0.14. Nothing may be learned yet."""
        self._clock = None

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        self._join(*self._all_models)

    # -- choosing -----------------------------------------------------------------------------------

    @holds_the_lock
    def select(
        self, context: RowsLike, actions: Sequence[Action] | None = None, *, random: Random | None = None
    ) -> Action:
        """Choose an action, and return its name.

        With the default rule, UCB, this is the action with the largest ``ucb``. Ties go to the first.

        Parameters
        ----------
        context : array of shape (dim,), or sparse row
            The features of the context. Anything that numpy can convert is taken.
        actions : list of str or int, optional
            The actions that may be chosen now. Default: all on offer.
        random : numpy.random.Generator, optional
            The generator to draw from. Default: the learner's own.

        Returns
        -------
        str or int
            The name of the action chosen.

        """
        with self._lock:
            roster, chooser, features = self._roster(actions), self._chooser, self._features
            is_quick = chooser.rule.chooses_by == "bound" and not features.is_projected
            draws, row = chooser.generator(random), features.row(context) if is_quick else None
            own = None if row is None else search(row[0], roster, chooser.rule)
            if own is not None:  # most choices of UCB: a dense context
                self._saw((np.asarray(context)[np.newaxis],))
                return roster.names[chooser.shared(own, len(roster.names), draws)]
            with self._request(context, draws) as read:
                return roster.names[chooser.select(self._choices(read, roster), draws)]

    def choose(
        self, context: RowsLike, actions: Sequence[Action] | None = None, *, random: Random | None = None
    ) -> ActionChoice:
        """Choose as ``select`` does, and also return the probability, mean, width and score of the action.

        Parameters
        ----------
        context, actions, random
            As for ``select``.

        Returns
        -------
        ActionChoice

        Examples
        --------
        >>> import sketchbandit as sb
        >>> models = sb.PerAction(["a", "b"], lambda: sb.oful(2, explore=sb.EpsilonGreedy(0.5, seed=1)))
        >>> models.choose([1.0, 0.0])
        ActionChoice(action='a', probability=0.75, mean=0.0, width=1.0, score=0.0)

        """
        roster, draws = self._roster(actions), self._chooser.generator(random)
        with self._request(context, draws) as read:
            return _named(roster, self._chooser.choose(self._choices(read, roster), draws))

    @holds_the_lock  # while it takes the scores; others go on while Thompson sampling samples
    def probabilities(self, context: RowsLike, actions: Sequence[Action] | None = None) -> Vector:
        """The probability that the next choice is this action, for every action in order.

        It is exact, except for Thompson sampling, where it is an estimate. The call changes nothing.
        """
        return self.scores(context, actions).probabilities()

    def scores(self, context: RowsLike, actions: Sequence[Action] | None = None) -> Scores:
        """The scores of the actions as of now, from which probabilities can be computed later."""
        return self._chooser.scores(self._choices(self._read(context), self._roster(actions)))

    def _choices(self, read: Arms, roster: Roster, directions: Matrix | None = None) -> ActionChoices:
        return ActionChoices(read, roster, self.rounds, directions)

    # -- ranking ------------------------------------------------------------------------------------

    def top(
        self,
        context: RowsLike,
        k: int,
        actions: Sequence[Action] | None = None,
        *,
        random: Random | None = None,
    ) -> list[Action]:
        """The names of the ``k`` best actions, best first. Ties go to the first.

        If the rule is random, every place is drawn separately, among the actions that are left.
        """
        roster, draws = self._roster(actions), self._chooser.generator(random)
        with self._request(context, draws) as read:
            places = self._chooser.places(self._choices(read, roster), k, draws, with_chances=False)
        return [roster.names[index] for index in places.index.tolist()]

    def slate(
        self,
        context: RowsLike,
        k: int,
        actions: Sequence[Action] | None = None,
        *,
        random: Random | None = None,
    ) -> list[ActionChoice]:
        """Rank as ``top`` does, and return an ``ActionChoice`` per place.

        The probability of each is that of its place, given the places before.
        """
        roster = self._roster(actions)
        ranking = self._ranked(context, k, roster, random, with_chances=True)
        places = zip(*(values.tolist() for values in ranking), strict=True)
        return [_named(roster, Choice(*place)) for place in places]

    def rank(
        self,
        context: RowsLike,
        k: int = 1,
        actions: Sequence[Action] | None = None,
        *,
        random: Random | None = None,
        probabilities: bool = True,
    ) -> Ranking:
        """Rank as ``slate`` does, and return arrays. With ``k = 1``, choose as ``select`` does.

        Parameters
        ----------
        context : array of shape (dim,)
            The features of the context.
        k : int
            The number of places.
        actions : list of str or int, optional
            The actions to rank. Default: all on offer. ``index`` in the result refers to this list.
        random : numpy.random.Generator, optional
            The generator to draw from. Default: the learner's own.
        probabilities : bool
            False leaves the probabilities out. This saves most of the time if they have to be estimated.

        Returns
        -------
        Ranking
            Arrays of shape (k,).

        Examples
        --------
        >>> import sketchbandit as sb
        >>> models = sb.PerAction(["a", "b"], lambda: sb.oful(2, beta=0.5))
        >>> models.update([1.0, 0.0], "a", -1.0)
        >>> models.rank([1.0, 0.0], 2).index
        array([1, 0])

        """
        return self._ranked(context, k, self._roster(actions), random, with_chances=probabilities)

    def _ranked(
        self, context: RowsLike, k: int, roster: Roster, random: Random | None, *, with_chances: bool
    ) -> Ranking:
        draws = self._chooser.generator(random)
        with self._request(context, draws) as read:
            return self._chooser.rank(self._choices(read, roster), k, draws, with_chances=with_chances)

    # -- several contexts -----------------------------------------------------------------------------

    def select_many(
        self, contexts: RowsLike, actions: Sequence[Action] | None = None, *, random: Random | None = None
    ) -> list[Action]:
        """Choose for n contexts (n, dim) at once, and return n names.

        The choices, and the draws, are those of a loop over ``select``. Thompson sampling with
        ``per="batch"`` draws one theta per action for the whole batch.
        """
        roster = self._roster(actions)
        chosen = self._many(contexts, roster, random, self._chooser.select)
        return [roster.names[index] for index in chosen]

    def choose_many(
        self, contexts: RowsLike, actions: Sequence[Action] | None = None, *, random: Random | None = None
    ) -> list[ActionChoice]:
        """Do ``choose`` for n contexts (n, dim). The choices are those of ``select_many``."""
        roster = self._roster(actions)
        return [_named(roster, one) for one in self._many(contexts, roster, random, self._chooser.choose)]

    def _many(
        self,
        contexts: RowsLike,
        roster: Roster,
        random: Random | None,
        choose: Callable[[ActionChoices, Random], T],
    ) -> list[T]:
        """What ``choose`` finds for each of n contexts."""
        chooser, features = self._chooser, self._features
        draws = chooser.generator(random)
        if is_vector(contexts):
            raise InputError("contexts must have shape (n, dim), got one vector; for one context use select")
        with chooser.undone_if_refused(draws, features.names):
            read = self._read_source(self._source(contexts))
            directions = None
            if chooser.shares_draw:
                models = [self._models[name].precision for name in roster.names]
                directions = np.array([precision.sample_direction(draws) for precision in models])
            found = [
                choose(self._choices(read.some(slice(i, i + 1)), roster, directions), draws)
                for i in range(len(read))
            ]
            features.names.remember(contexts)
        self._saw(self._requests_of(read.raw))
        return found

    def _requests_of(self, contexts: Rows) -> Iterable[Rows]:
        """Every context is a request."""
        return (contexts[i : i + 1] for i in range(contexts.shape[0]))

    # -- the numbers that choices are made from ---------------------------------------------------------

    def mean(self, context: RowsLike, actions: Sequence[Action] | None = None) -> Vector:
        """The mean reward of every action, in order."""
        return self._candidates(context, actions).rewards

    def margin(self, context: RowsLike, actions: Sequence[Action] | None = None) -> Vector:
        """The baseline plus x'theta of every action, by its model. For linear rewards, this is the mean."""
        return self._candidates(context, actions).margins

    def width(self, context: RowsLike, actions: Sequence[Action] | None = None) -> Vector:
        """The confidence width sqrt(x'A^-1 x) of every action, with the A of its model."""
        return self._candidates(context, actions).widths()

    def ucb(self, context: RowsLike, actions: Sequence[Action] | None = None) -> Vector:
        """The upper confidence bound, margin + radius·width, of every action."""
        return self._candidates(context, actions).bounds()

    def _candidates(self, context: RowsLike, actions: Sequence[Action] | None) -> ActionCandidates:
        return self._choices(self._read(context), self._roster(actions)).candidates()

    # -- reading ------------------------------------------------------------------------------------

    def _read(self, context: object) -> Arms:
        """Read one context."""
        source = self._source(context)
        if source.shape[0] != 1:
            raise InputError(
                f"give one context of shape (dim,), got {source.shape[0]}; for many contexts use select_many"
            )
        return self._read_source(source)

    def _source(self, contexts: object) -> Rows:
        """Contexts as a numpy array or CSR matrix (n, dim) of finite numbers."""
        source = row_source(self._features.names.align(contexts), self.dim, "contexts")
        values = source.data if sparse.issparse(source) else source
        if not np.isfinite(values).all():
            rows = source.toarray() if sparse.issparse(source) else source
            bad = int(np.flatnonzero(~np.isfinite(rows).all(axis=1))[0])
            raise complaint(rows, bad, self.dtype, "context")
        return source

    def _read_source(self, source: Rows) -> Arms:
        try:
            read = self._features.read(source, may_be_empty=True)
        except RowError as error:  # the context is too long to be projected
            raise RowError("context", error.row, error.why) from error
        with np.errstate(over="ignore"):
            too_long = np.flatnonzero(~np.isfinite(read.norms_sq()))
        if len(too_long):
            raise complaint(source, int(too_long[0]), self.dtype, "context")
        return read

    # -- learning -----------------------------------------------------------------------------------

    @holds_the_lock
    def update(
        self, context: RowsLike, action: Action | SupportsIndex | Sequence[Action], reward: ArrayLike
    ) -> None:
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

    def _learn(self, context: object, action: object, reward: object) -> Complaints:
        features = self._features
        if (  # the fast path
            type(context) is np.ndarray
            and isinstance(reward, float)
            and context.dtype == features.dtype
            and context.shape == (features.dim,)
            and context.flags.c_contiguous
            and type(action) in _NAMES
            and action in self._models
            and not features.is_projected
            and features.sample is None
        ):
            policy = self._models[action]
            if self._clock is not None and math.isfinite(reward) and np.isfinite(context).all():
                policy._posterior.forget_until(self._now)
            complaints = _said_of(action, policy._learn(context, reward))
            if self._clock is not None:
                self._count_up(policy, self._clock)
            return complaints
        if isinstance(action, ActionChoice):
            raise InputTypeError("the action is an ActionChoice: give its name, choice.action")
        if is_scalar(action) or not isinstance(action, Iterable):
            name = self._known(action)
            source = self._source(context)
            if source.shape[0] != 1:
                raise InputError(f"{source.shape[0]} contexts need as many actions, got one: {name!r}")
            value = read_reward(reward)
            if features.is_warming_up or self._clock is not None:
                complaints = self._learn_many(source, [name], [value])
            else:
                complaints = _said_of(name, self._models[name]._learn_any(source, value))
        else:
            complaints = self._learn_many(context, action, reward)
        features.names.remember(context)
        return complaints

    def _learn_many(self, contexts: object, actions: Iterable[object], rewards: object) -> Complaints:
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
                policy._posterior.check_many(self._features.read_rows(rows), mine)
            except RowError as error:  # its row number counts within the action's part
                why = error.why.replace("arms", "contexts")
                raise RowError("context", places[name][error.row], why) from error
        if self._features.is_warming_up:
            return self._learn_warming_up(source, names, values)
        complaints: Complaints = ()
        if self._in_order:
            for place, name in enumerate(names):
                policy = self._models[name]
                policy._posterior.forget_until(self._now)
                complaints += _said_of(name, policy._learn_any(source[[place]], float(values[place])))
                self._count_up(policy, self._clock)
            return complaints
        for name, policy, rows, mine in parts:
            complaints += _said_of(name, policy._learn_any(rows, mine))
        return complaints

    @property
    def _in_order(self) -> bool:
        """Whether what models learn depends on the order of rounds of different actions."""
        posterior = self._template._posterior
        return self._clock is not None or (posterior.scale.baseline and posterior.estimate.weighs)

    def _count_up(self, policy: LinUCB, clock: Clock | None) -> None:
        """Count a round that a model has learned, and forget where that is due."""
        own = policy._posterior.clock
        if clock is None or own is None:
            return
        self._now += 1
        own.seen = self._now
        clock.since += 1
        if clock.rounds_left(self._now) <= 0:
            self._reward_scale.forget(clock.strike(self._now))
        if self._now >= self._next_sweep:
            self._sweep()

    def _sweep(self) -> None:
        """Let all models forget whose forgetting is due, though they learn nothing."""
        waits = []
        for policy in self._models.values():
            posterior = policy._posterior
            if posterior.clock is None or posterior.sketch.mass <= _FORGOTTEN * posterior.ridge:
                continue
            posterior.forget_until(self._now)
            waits.append(posterior.clock.rounds_left(self._now))
        self._next_sweep = self._now + max(1, min(waits, default=1))

    # -- the warm-up --------------------------------------------------------------------------------

    def _learn_warming_up(self, source: Rows, names: list[Action], rewards: Vector) -> Complaints:
        """Learn one by one until the warm-up is over. Everything was checked before."""
        complaints: Complaints = ()
        kept = 0
        for row in self._to_be_kept(source):
            name, policy = names[kept], self._models[names[kept]]
            policy._posterior.forget_until(self._now)
            at = None if self._clock is None else self._now
            complaints += _said_of(name, policy._learn_and_keep(row, float(rewards[kept]), at))
            self._count_up(policy, self._clock)
            kept += 1
        if kept < len(names):
            complaints += self._learn_many(source[kept:], names[kept:], rewards[kept:])
        return complaints

    def _check_kept(self) -> None:
        for policy in self._models.values():
            policy._check_kept()

    def _fitted(self) -> Scaling:
        rounds = [policy._warm_up.data(self.dim) for policy in self._models.values()]
        return self._features.fit(rounds, self._template.ridge)

    def _learn_anew(self) -> None:
        for policy in self._all_models:
            policy._learn_anew()
        self._join(*self._all_models)

    # -- which actions there are ----------------------------------------------------------------------

    @property
    def actions(self) -> tuple[Action, ...]:
        """The actions on offer, in the order in which they were added."""
        return self._all_offered().names

    @property
    def retired(self) -> tuple[Action, ...]:
        """The actions that are no longer offered. They still learn."""
        return tuple(name for name in self._models if name in self._retired)

    def add(self, action: Action) -> None:
        """Offer a new action, with an empty model, or offer a retired action again, with its old model."""
        name = check_action(action)
        if name in self._retired:
            self._retired.remove(name)
            self._added_at[name] = self.rounds
            self._join()
        elif name in self._models:
            raise InputError(f"action {name!r} is offered already")
        else:
            self._models[name] = copy.deepcopy(self._template)
            self._added_at[name] = self.rounds
            self._join(self._models[name])

    def retire(self, action: Action) -> None:
        """Stop offering an action. Its model stays, and learns from rewards that come late."""
        name = self._known(action)
        if name in self._retired:
            raise InputError(f"action {name!r} is retired already; to delete its model too, use remove")
        self._retired.add(name)
        self._join()

    def remove(self, action: Action) -> None:
        """Delete an action, offered or retired, and its model. Its rewards are refused from now on."""
        name = self._known(action)
        self._added_at = {
            other: min(at, self.rounds) for other, at in self._added_at.items() if other != name
        }
        del self._models[name]
        self._retired.discard(name)
        self._join()

    def reset(self, action: Action | None = None) -> None:
        """Let the model of one action forget everything, or all models if no action is given.

        Names and scaling stay. Models taken from ``policies`` before remain the ones in use.
        """
        names = self._models if action is None else (self._known(action),)
        if action is None:
            posterior = self._template._posterior
            self._clock = None if self._clock is None else Clock(self._clock.factor)
            self._reward_scale = posterior.estimate.make_scale(baseline=posterior.scale.baseline)
            self._join(*self._all_models)
        for name in names:
            self._models[name]._reset()
        now = self.rounds
        self._added_at = {name: now if name in names else min(at, now) for name, at in self._added_at.items()}
        self._join(*self._models.values())

    def __getitem__(self, action: Action) -> LinUCB:
        """The model of an action, offered or retired. Read from it only; it learns through ``update``."""
        with self._lock:
            return self._models[self._known(action)]

    def __len__(self) -> int:
        return len(self.actions)

    def __iter__(self) -> Iterator[Action]:
        return iter(self.actions)

    def __contains__(self, action: Action | SupportsIndex | Sequence[Action]) -> bool:
        return action in self.actions

    def _known(self, action: object) -> Action:
        name = check_action(action)
        if name not in self._models:
            raise InputError(f"unknown action {name!r}; {some_of(self._models)}; use add for a new action")
        return name

    def _all_offered(self) -> Roster:
        if self._everything is None:
            names = tuple(name for name in self._models if name not in self._retired)
            self._places = {name: place for place, name in enumerate(names)}
            board = Board([self._models[name]._posterior for name in names])
            self._everything = Roster(names, np.arange(len(names)), board)
        return self._everything

    def _roster(self, actions: Sequence[Action] | None) -> Roster:
        """The actions that may be chosen: those given, or all on offer."""
        everything = self._all_offered()
        if actions is None:
            if not everything.names:
                raise InputError("there are no actions to choose from: all are retired; add an action")
            return everything
        names = tuple(self._known(name) for name in read_names(actions))
        for name in names:
            if name in self._retired:
                raise InputError(f"action {name!r} is retired; add({name!r}) offers it again")
        which = np.array([self._places[name] for name in names], dtype=np.intp)
        return Roster(names, which, everything.board)

    # -- what it tells ------------------------------------------------------------------------------

    @property
    def policies(self) -> dict[Action, LinUCB]:
        """The model of every action, also of retired ones. Read only; models learn through ``update``."""
        return dict(self._models)

    @property
    def baseline(self) -> float:
        """What the margins of all models are measured from: the mean reward of all actions, through a link.

        It is 0 without a baseline (docs/bandits.md).
        """
        return self._template.baseline

    @property
    def forget(self) -> float | None:
        """The factor by which all models forget per round, whoever learns; None if nothing is forgotten."""
        return self._template.forget

    @property
    def rounds(self) -> int:
        """The number of rewards learned from, over all models."""
        return sum(policy._posterior.rounds for policy in self._models.values())

    @property
    def nbytes(self) -> int:
        """Bytes of all arrays held."""
        models, initial = self._all_models, self._template._warm_up.initial
        own = sum(policy._posterior.nbytes + policy._warm_up.nbytes for policy in models)
        blank = 0 if initial is None else initial.sketch.nbytes
        return self._all_offered().board.nbytes + own + blank + self._features.nbytes

    def health(self) -> dict[Action, Health]:
        """The ``Health`` of every model, by action. It says which actions were (nearly) never tried."""
        rounds, found = self.rounds, {name: policy.health() for name, policy in self._models.items()}
        for name in self.actions:
            tried, since = self._models[name].rounds, rounds - self._added_at[name]
            if tried <= _HARDLY and are_enough_to_try(since, len(self.actions)):
                sentence = untried_action_sentence(name, tried, since)
                found[name] = found[name]._replace(untried=(name,), sentence=sentence)
        return found

    def __repr__(self) -> str:
        retired = f", {len(self._retired)} retired" if self._retired else ""
        return (
            f"<{type(self).__name__}({len(self.actions)} actions{retired}, each {self._model_text()}): "
            f"{self.rounds} rounds, {self.nbytes:,} bytes>"
        )

    def _model_text(self) -> str:
        """What kind of model an action has; the models differ in what they have learned."""
        model = self._template
        reader = "" if self._features.scaling is None else f", {self._features!r}"
        return f"{type(model).__name__} on {type(model.sketch).__name__}, explore={model.explore!r}{reader}"

    def _facts(self) -> Facts:
        shown = list(self._models)[:_SHOWN]
        more = len(self._models) - len(shown)
        retired = f", {len(self._retired):,} retired" if self._retired else ""
        return [
            ("actions", f"{len(self.actions):,}{retired}"),
            ("each", self._model_text()),
            ("rounds", f"{self.rounds:,}"),
            ("memory", amount(self.nbytes)),
            *((str(name), _summary(self._models[name])) for name in shown),
            *([("...", f"{more:,} more actions")] if more else []),
        ]

    # -- merging ------------------------------------------------------------------------------------

    def _absorb(self, other: "PerAction") -> Complaints:
        """Merge on copies, so that all of it is done or nothing."""
        copy.deepcopy(self._template)._absorb(other._template)  # raises with the setting that differs
        self._features.check_mergeable(other._features)
        names = self._features.names.merged(other._features.names)
        scale = copy.deepcopy(self._reward_scale)
        scale.add(other._reward_scale)
        models = dict(self._models)
        complaints: Complaints = ()
        for name, given in other._models.items():
            theirs = _up_to_date(given, other._now)
            if self._clock is not None:  # then it is a copy
                later = self._now - other._now
                theirs._warm_up.rounds = [one.later(later) for one in theirs._warm_up.rounds]
            if name in models:
                models[name] = copy.deepcopy(_up_to_date(models[name], self._now))
                models[name]._posterior.estimate.reward_scale = scale
                complaints += _said_of(name, models[name]._absorb(theirs))
            else:
                models[name] = copy.deepcopy(theirs)
                estimate = models[name]._posterior.estimate
                estimate.reward_scale = scale
                estimate.move_origin(scale.origin - other._reward_scale.origin)
        self._retired |= {name for name in other._retired if name not in self._models}
        self._models, self._reward_scale, self._features.names = models, scale, names
        self._added_at = {name: self._added_at.get(name, 0) + other._added_at.get(name, 0) for name in models}
        self._join(*self._all_models)
        self._features.merge(other._features)
        self._scale_if_due()
        return complaints

    # -- files ----------------------------------------------------------------------------------------

    def _content(self) -> tuple[Scalars, Arrays]:
        models: dict[str, Part] = {str(i): policy for i, policy in enumerate(self._models.values())}
        shared: dict[str, Part] = {} if self._features.scaling is None else {"reader": self._features}
        parts, arrays = content_of({"template": self._template, **models, **shared})
        own: Scalars = {
            "actions": list(self._models),
            "retired": list(self.retired),
            "columns": self.columns,
            "added_at": list(self._added_at.values()),
            "reward_scale": self._reward_scale.dump(),
        }
        if self._clock is not None:
            own |= {"now": self._now, "clock": self._clock.dump()}
        return {**own, **self._chooser.dump(), "parts": parts}, arrays

    @classmethod
    def undump(cls, scalars: Scalars, arrays: Arrays, **extra: Any) -> Self:
        """Return the object that ``dump`` described."""

        def restored(name: str) -> LinUCB:
            part = scalars["parts"][name]
            cls = POLICIES.of_kind(part["kind"])
            policy = cls.undump(part["content"], taken_from(name, arrays), **extra)
            if not isinstance(policy, LinUCB):
                raise FileError(f"the file is damaged: a {cls.__name__} cannot be the model of an action")
            return policy

        names = [check_action(name) for name in scalars["actions"]]
        retired = {check_action(name) for name in scalars["retired"]}
        if len(set(names)) < len(names) or not retired <= set(names):
            raise FileError("the file is damaged: the names of the actions make no sense")
        models = {name: restored(str(i)) for i, name in enumerate(names)}
        made, template = cls.__new__(cls), restored("template")
        template._features.names = ColumnNames(scalars.get("columns"))
        if "reader" in scalars["parts"]:
            template._features.restore(scalars["parts"]["reader"], taken_from("reader", arrays))
            template._prepare_warm_up()
        if "reward_scale" in scalars:
            template._posterior.scale.restore(scalars["reward_scale"])
        else:  # a file of 0.14 or before: every model has its own
            for policy in models.values():
                template._posterior.scale.add(policy._posterior.scale)
        made._set_up(template, models, retired)
        if "added_at" in scalars:  # not in files of 0.14
            made._added_at = dict(zip(names, map(int, scalars["added_at"]), strict=True))
        if "clock" in scalars:
            made._now = check_count("the round of the clock", scalars["now"], at_least=0)
            made._clock = Clock.undump(scalars["clock"])
        else:
            made._forget_apart()
        made._chooser.restore(scalars)
        return made


def _named(roster: Roster, choice: Choice) -> ActionChoice:
    """The choice with the name of the action in place of its index."""
    return ActionChoice(roster.names[choice.index], *choice[1:])


def _summary(policy: LinUCB) -> str:
    return f"{policy.rounds:,} rounds, {certificate(policy.health().certificate)}"


def _up_to_date(policy: LinUCB, now: int) -> LinUCB:
    """The model, or a copy of it if it forgets, whose clock counts the rounds of the others up to now."""
    if policy._posterior.clock is None:
        return policy
    made = copy.deepcopy(policy)
    clock = made._posterior.clock
    assert clock is not None  # noqa: S101  (for the type checker)
    clock.follow(now)
    clock.seen = None  # that of another ``PerAction`` has rounds of its own
    return made


def _said_of(action: Action, complaints: Complaints) -> Complaints:
    if not complaints:  # most rounds
        return complaints
    return tuple(type(complaint)(f"action {action!r}: {complaint}") for complaint in complaints)
