"""Actions and their models: which exist, which are offered, what they hold, and files."""

import copy
from collections.abc import Iterable, Iterator
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np

from sketchbandit.arrays import AnyArray, Arrays, Scalars, taken_from
from sketchbandit.errors import FileError, InputError
from sketchbandit.explore import Explore
from sketchbandit.html_repr import Facts, amount, certificate
from sketchbandit.policy.action_board import Board
from sketchbandit.policy.action_names import Action, check_action, read_names, some_of
from sketchbandit.policy.exploring import Exploring, copy_of_rule
from sketchbandit.policy.files import Part, content_of
from sketchbandit.policy.forgetting import Clock
from sketchbandit.policy.health import Health
from sketchbandit.policy.learner import Learner
from sketchbandit.policy.learning import Policy
from sketchbandit.policy.verdicts import are_enough_to_try, untried_action_sentence
from sketchbandit.scaling import Reader, Scaling
from sketchbandit.sketch.checks import check_count
from sketchbandit.sketch.columns import ColumnNames

_SHOWN = 20  # actions in a notebook
_HARDLY = 2  # rewards: an action with no more was (nearly) never tried


class Offer(NamedTuple):
    """Actions to choose from, and their places on the board."""

    names: tuple[Action, ...]
    which: AnyArray
    board: Board


class ActionModels(Learner):
    """The state of ``PerAction``. All models and their sketches share one lock."""

    _kinds: ClassVar[dict[str, type[Any]]] = {}
    _noun = "set of models"

    def _set_up(
        self, template: Policy, models: dict[Action, Policy], retired: set[Action], columns: ColumnNames
    ) -> None:
        self._template, self._models, self._retired, self._columns = template, models, retired, columns
        self._reward_scale = template._reward_scale
        self._dim, self._dtype = template.dim, template.dtype
        self._plain_shape = (template._plain_dim,)  # of a context that needs no conversion
        self._reader = template._reader
        Exploring._explore_by(self, template._explore)
        self._added_at = dict.fromkeys(models, 0)
        """The number of rounds when an action was added."""
        self._now = 0
        """The round of the clock by which all models forget."""
        self._clock = None if template.forget is None else Clock(template.forget)
        """The clock of the reward scale. None: nothing is forgotten, or each model has a clock of its own."""
        self._lock = self._make_lock()
        self._join(template, *models.values())

    def _explore_by(self, rule: Explore) -> None:
        """Give all models the same rule."""
        for policy in (self._template, *self._models.values()):
            policy._explore_by(copy_of_rule(rule))
        super()._explore_by(self._template._explore)
        self._join()

    def _forget_apart(self) -> None:
        """Let each model forget by its own rounds, as in 0.14. Nothing may be learned yet."""
        self._clock = None

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        self._join(self._template, *self._models.values())

    def _unlocked(self) -> dict[str, Any]:
        return {**super()._unlocked(), "_everything": None}

    def _join(self, *policies: Policy) -> None:
        """Share lock, column names and scaling with these models. The set on offer has changed."""
        for policy in policies:
            policy._precision.sketch._lock = self._lock
            policy._lock = policy._make_lock()
            policy._columns = self._columns
            policy._is_part = True
            policy._estimate.reward_scale = self._reward_scale
            policy._read_by(self._reader, self._template._blank)
            if policy._clock is not None and policy._clock.seen is None:
                policy._clock.seen = self._now
        self._next_sweep = self._now
        self._lens, self._is_warming = self._template._lens, self._template._is_warming
        self._everything: Offer | None = None

    def _check_kept(self) -> None:
        for policy in self._models.values():
            policy._check_kept()

    def _requests_of(self, arms: Any) -> Iterable[Any]:
        """Every context is a request."""
        return (arms[i : i + 1] for i in range(arms.shape[0]))

    def _fit(self, reader: Reader) -> Scaling:
        return reader.fit([policy._kept_rounds for policy in self._models.values()], self._template.ridge)

    def _start_anew(self) -> None:
        """Let every model learn its kept rounds again."""
        policies = (self._template, *self._models.values())
        for policy in policies:
            policy._start_anew()
        self._join(*policies)

    def _all_offered(self) -> Offer:
        if self._everything is None:
            names = tuple(name for name in self._models if name not in self._retired)
            self._places = {name: place for place, name in enumerate(names)}
            board = Board([self._models[name] for name in names])
            self._everything = Offer(names, np.arange(len(names)), board)
        return self._everything

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
            self._clock = None if self._clock is None else Clock(self._clock.factor)
            self._reward_scale = self._template._estimate.make_scale(baseline=self._template._has_baseline)
            self._join(self._template, *self._models.values())
        for name in names:
            self._models[name]._reset()
        now = self.rounds
        self._added_at = {name: now if name in names else min(at, now) for name, at in self._added_at.items()}
        self._join(*self._models.values())

    def __getitem__(self, action: Action) -> Policy:
        """The model of an action, offered or retired. Read from it only; it learns through ``update``."""
        with self._lock:
            return self._models[self._known(action)]

    def __len__(self) -> int:
        return len(self.actions)

    def __iter__(self) -> Iterator[Action]:
        return iter(self.actions)

    def __contains__(self, action: Any) -> bool:
        return action in self.actions

    def _known(self, action: Any) -> Action:
        name = check_action(action)
        if name not in self._models:
            raise InputError(f"unknown action {name!r}; {some_of(self._models)}; use add for a new action")
        return name

    def _offer(self, actions: Any) -> Offer:
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
        return Offer(names, which, everything.board)

    # -- what it tells ------------------------------------------------------------------------------

    @property
    def policies(self) -> dict[Action, Policy]:
        """The model of every action, also of retired ones. Read only; models learn through ``update``."""
        return dict(self._models)

    @property
    def baseline(self) -> float:
        """What the margins of all models are measured from: the mean reward of all actions, through a link.

        It is 0 without a baseline (docs/bandits.md).
        """
        baseline: float = self._template._estimate.baseline
        return baseline

    @property
    def forget(self) -> float | None:
        """The factor by which all models forget per round, whoever learns; None if nothing is forgotten."""
        return self._template.forget

    @property
    def rounds(self) -> int:
        """The number of rewards learned from, over all models."""
        return sum(policy._rounds for policy in self._models.values())

    @property
    def nbytes(self) -> int:
        """Bytes of all arrays held."""
        held = (self._template, *self._models.values())
        blank = self._template._blank
        warm_up = sum(policy._kept_nbytes for policy in held) + (0 if blank is None else blank.sketch.nbytes)
        reader = 0 if self._reader is None else self._reader.nbytes + warm_up
        return self._all_offered().board.nbytes + sum(policy.nbytes for policy in held) + reader

    def health(self) -> dict[Action, Health]:
        """The ``Health`` of every model, by action. It says which actions were (nearly) never tried."""
        rounds, found = self.rounds, {name: policy.health() for name, policy in self._models.items()}
        for name in self.actions:
            tried, since = self._models[name]._rounds, rounds - self._added_at[name]
            if tried <= _HARDLY and are_enough_to_try(since, len(self.actions)):
                sentence = untried_action_sentence(name, tried, since)
                found[name] = found[name]._replace(untried=(name,), sentence=sentence)
        return found

    def __repr__(self) -> str:
        retired = f", {len(self._retired)} retired" if self._retired else ""
        return (
            f"<{type(self).__name__}({len(self.actions)} actions{retired}, each {self._said_of_each()}): "
            f"{self.rounds} rounds, {self.nbytes:,} bytes>"
        )

    def _said_of_each(self) -> str:
        """What kind of model an action has; the models differ in what they have learned."""
        model = self._template
        reader = "" if self._reader is None else f", {self._reader!r}"
        return f"{type(model).__name__} on {type(model.sketch).__name__}, explore={model.explore!r}{reader}"

    def _facts(self) -> Facts:
        shown = list(self._models)[:_SHOWN]
        more = len(self._models) - len(shown)
        retired = f", {len(self._retired):,} retired" if self._retired else ""
        return [
            ("actions", f"{len(self.actions):,}{retired}"),
            ("each", self._said_of_each()),
            ("rounds", f"{self.rounds:,}"),
            ("memory", amount(self.nbytes)),
            *((str(name), _told(self._models[name])) for name in shown),
            *([("...", f"{more:,} more actions")] if more else []),
        ]

    # -- files ----------------------------------------------------------------------------------------

    def _content(self) -> tuple[Scalars, Arrays]:
        models: dict[str, Part] = {str(i): policy for i, policy in enumerate(self._models.values())}
        shared: dict[str, Part] = {} if self._reader is None else {"reader": self._reader}
        parts, arrays = content_of({"template": self._template, **models, **shared})
        own: Scalars = {
            "actions": list(self._models),
            "retired": list(self.retired),
            "columns": self._columns.names,
            "added_at": list(self._added_at.values()),
            "reward_scale": self._reward_scale.dump(),
        }
        if self._clock is not None:
            own |= {"now": self._now, "clock": self._clock.dump()}
        return {**own, **self._saved_chance(), "parts": parts}, arrays

    @classmethod
    def undump(cls, scalars: Scalars, arrays: Arrays, **extra: Any) -> Self:
        """Return the object that ``dump`` described."""

        def restored(name: str) -> Policy:
            part = scalars["parts"][name]
            policy = Policy.of_kind(part["kind"])
            return policy.undump(part["content"], taken_from(name, arrays), **extra)

        names = [check_action(name) for name in scalars["actions"]]
        retired = {check_action(name) for name in scalars["retired"]}
        if len(set(names)) < len(names) or not retired <= set(names):
            raise FileError("the file is damaged: the names of the actions make no sense")
        models = {name: restored(str(i)) for i, name in enumerate(names)}
        made, template = cls.__new__(cls), restored("template")
        if "reader" in scalars["parts"]:
            reader = Reader.undump(scalars["parts"]["reader"], taken_from("reader", arrays))
            template._read_by(reader, template._make_blank(reader))
        if "reward_scale" in scalars:
            template._reward_scale.restore(scalars["reward_scale"])
        else:  # a file of 0.14 or before: every model has its own
            for policy in models.values():
                template._reward_scale.add(policy._reward_scale)
        made._set_up(template, models, retired, ColumnNames(scalars.get("columns")))
        if "added_at" in scalars:  # not in files of 0.14
            made._added_at = dict(zip(names, map(int, scalars["added_at"]), strict=True))
        if "clock" in scalars:
            made._now = check_count("the round of the clock", scalars["now"], at_least=0)
            made._clock = Clock.undump(scalars["clock"])
        else:
            made._forget_apart()
        made._restore_chance(scalars)
        return made


def _told(policy: Policy) -> str:
    return f"{policy.rounds:,} rounds, {certificate(policy.health().certificate)}"
