"""Policies by name: which there are, what they take, what to call them in a figure; one for each action."""

import inspect
from collections.abc import Iterable
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from sketchbandit.arrays import Rows
from sketchbandit.environment import Clicks, ContextualClassification, Environment, GaussianArms
from sketchbandit.environment.classification import Taken
from sketchbandit.errors import InputError
from sketchbandit.estimate import Estimate
from sketchbandit.estimate.base import MODELS
from sketchbandit.explore.base import RULES
from sketchbandit.policy import PerAction, Policy, recipes
from sketchbandit.policy.recipes import parameters, recipe
from sketchbandit.simulation import rules
from sketchbandit.simulation.loop import play
from sketchbandit.simulation.specs import UNIFORM, UNIFORM_TITLE, Spec, Value, is_chance, spec
from sketchbandit.sketch.checks import check_count

ROUNDS = "rounds"
"""As a horizon: as many as are played."""
MODEL = "rewards"
_OF_MODEL = f"{MODEL}."
DELAY = "delay"
"""How many rounds late the policy learns its rewards: said of the contender, and no setting of its policy."""


def check(policy: Spec) -> None:
    """Refuse an unknown policy, an unknown setting or an impossible value, before any work starts."""
    if is_chance(policy):
        return
    if policy.name not in recipes.RECIPES:
        choices = ", ".join([*recipes.RECIPES, UNIFORM.name])
        hint = f"; {policy.name} is a rule of exploration: write oful:{rules.RULE}={policy.name}"
        raise InputError(
            f"unknown policy {policy.name!r}; choose from {choices}" + (hint if policy.name in RULES else "")
        )
    if policy.get("dim") is not None:
        raise InputError(f"{policy}: dim comes from the log or the data; leave it out")
    try:  # which values are possible does not depend on the dimension, and 2 costs nothing
        build(policy, 2, rounds=1)
        check_count(DELAY, policy.get(DELAY, 0), at_least=0)
    except (TypeError, ValueError) as error:
        raise InputError(f"{policy}: {error}") from error


def is_given(policy: Spec) -> bool:
    """Whether the policy says its ridge or its rule's number itself, and so is not tuned; chance has none."""
    return is_chance(policy) or untuned(policy) != policy


def untuned(policy: Spec) -> Spec:
    """The same without what is tuned."""
    number = rules.number_of(policy)
    return rules.without_settings(policy.without("ridge"), *([number.setting] if number else []))


def tuned(policy: Spec, ridge: float, number: float | None) -> Spec:
    """The same with what was found by tuning."""
    found = rules.number_of(policy)
    if found is None or number is None:
        return policy.with_settings(ridge=ridge)
    rule: dict[str, Value] = {} if found.setting == "beta" else {rules.RULE: rules.name_of(policy)}
    return policy.with_settings(ridge=ridge, **{rules.key(policy, found.setting): number}, **rule)


def with_defaults(policy: Spec) -> Spec:
    """The same with its ridge given, and so not to be tuned."""
    if is_chance(policy):
        return policy
    return spec(policy.name, **{"ridge": _default(policy, "ridge"), **dict(policy.settings)})


def _default(policy: Spec, name: str) -> Value:
    """Of a setting; None where there is none."""
    found = inspect.signature(recipe(policy.name).make).parameters.get(name)
    return None if found is None else found.default


def build_for(environment: Environment, policy: Spec, seed: int, rounds: int) -> Any:
    """The policy that plays there: where actions have no features, a model for each."""
    if environment.actions is None:
        return build(policy, environment.dim, seed, rounds)
    models = PerAction(range(environment.actions), lambda: build(policy, environment.dim, seed, rounds))
    return ActionPolicy(models)


def build(policy: Spec, dim: int, seed: int = 0, rounds: int | None = None) -> Policy:
    """The policy; ``seed`` is used where it draws something and was given no seed.

    ``horizon=rounds`` stands for as many as are played.
    """
    settings = dict(rules.seeded(policy.without(DELAY), seed).settings)
    if _default(policy, "seed") is not None:  # a seed that is None by default is the rule's
        settings.setdefault("seed", seed)
    if settings.get("horizon") == ROUNDS:
        if rounds is None:
            raise InputError(f"{policy} needs to know how many rounds are played")
        settings["horizon"] = rounds
    return recipes.build(policy.name, dim, **settings)


def model_of(policy: Spec) -> Estimate:
    """What it believes of the rewards, before it has learned anything."""
    found: Estimate = build(policy, 2, rounds=1).estimate
    return found


def family(policy: Spec) -> str:
    """What the paper calls the method."""
    if is_chance(policy):
        return UNIFORM_TITLE
    return recipe(policy.name).title(dict(policy.settings))


def label(policy: Spec) -> str:
    """The method with what tells it from its siblings, for a figure; its rule and the rule's settings last.

    >>> from sketchbandit.simulation.specs import parse
    >>> label(parse("adaptive:explore=thompson,scale=0.1,ridge=2"))
    'Adaptive, λ = 2, Thompson, s = 0.1'
    >>> label(parse("oful:rewards=robust,rewards.scale=0.1,beta=0.5"))
    'OFUL, β = 0.5, Robust, scale = 0.1'
    """
    if is_chance(policy):
        return UNIFORM_TITLE
    signs = {"size": recipe(policy.name).size_sign, "epsilon": "ε", "ridge": "λ", "beta": "β"}
    of_rule = rules.settings_of(policy)
    of_model = {k: v for k, v in policy.settings if k.startswith(_OF_MODEL)}
    own = rules.without_settings(policy, *of_rule).without("compensation", rules.RULE, MODEL, *of_model)
    model = [] if policy.get(MODEL) is None else [MODELS.named(policy.get(MODEL)).__name__]
    model += [f"{key.removeprefix(_OF_MODEL)} = {value}" for key, value in of_model.items()]
    if policy.get(rules.RULE) is None:
        return ", ".join([family(policy), *_written(own, signs, hidden=ROUNDS), *model])
    number = rules.number_of(policy)
    name = family(policy).removesuffix(", anytime")  # a rule's name is long enough
    of_rule_signs = {number.setting: number.sign} if number else {}
    parts = [name, *_written(own, signs), *model, rules.title(policy)]
    return ", ".join([*parts, *_written(spec("", **of_rule), of_rule_signs)])


def _written(given: Spec, signs: dict[str, str], hidden: str = "") -> Iterable[str]:
    shown = sorted(
        ((k, v) for k, v in given.settings if v != hidden),
        key=lambda setting: (list(signs).index(setting[0]) if setting[0] in signs else 9, setting[0]),
    )
    return (f"{signs.get(k, k)} = {v}" for k, v in shown)


def reading(policy: Spec) -> str:
    """How it reads features, in words."""
    kind = policy.get("scaling")
    words = "as stored" if kind is None else "unit rows" if kind == "rows" else f"scaling={kind}"
    return words + (", intercept" if policy.get("intercept") else "")


def warm_up(policy: Spec, *, per_action: bool = False) -> None:
    """Play a little, so that compiling the loops of a round is not timed."""
    own = {*parameters(policy.name), DELAY} - {"dtype", "scaling", "intercept", rules.RULE, MODEL, "forget"}
    _warm_up(policy.without(*own), per_action)


@lru_cache(maxsize=64)
def _warm_up(policy: Spec, per_action: bool) -> None:
    """As few rows, and as a matrix; clicks are rewards of every model."""
    for dim, size in ((24, 4), (8, 6)):
        small: dict[str, Value] = {"size": size, "epsilon": 2}
        known = {key: value for key, value in small.items() if key in parameters(policy.name)}
        place: Environment = Clicks(GaussianArms(dim=dim, arms=8))
        if per_action:
            rows = np.random.default_rng(0).standard_normal((40, dim))
            place = ContextualClassification(rows, np.arange(40) % 4)
        for _ in play(build_for(place, policy.with_settings(**known), 0, 60), place, 60):
            pass


class Sketches(NamedTuple):
    """The sketches of all actions together: rows add up, and the worst one counts."""

    size: int
    row_count: int
    budget: float


class Healths(NamedTuple):
    """What the models say of themselves, the worst of it."""

    certificate: float
    heading_for_linear_regret: bool


class ActionPolicy:
    """What a round asks of a policy, answered by the models of the actions 0, 1, ...

    The context is in the place of the arms. What is learned from is the context with the action taken.
    """

    def __init__(self, models: PerAction) -> None:
        self.models = models
        self.dim = models.dim
        self._first = models[0]
        self.ridge, self.beta = self._first.ridge, self._first.beta
        self.explore = models.explore

    def select(self, context: Rows) -> int:
        """The action, which is its own index."""
        return int(self.models.select(context))

    def update(self, taken: Taken, reward: float) -> None:
        """The model of the action learns; the others do not."""
        self.models.update(taken.context, taken.action, reward)

    @property
    def nbytes(self) -> int:
        """Bytes of all models."""
        return self.models.nbytes

    @property
    def sketch(self) -> Sketches:
        """All sketches together."""
        sketches = [policy.sketch for policy in self.models.policies.values()]
        sizes, rows = [sketch.size for sketch in sketches], [sketch.row_count for sketch in sketches]
        return Sketches(sum(sizes), sum(rows), max(sketch.budget for sketch in sketches))

    def health(self) -> Healths:
        """The worst of all models."""
        found = self.models.health().values()
        return Healths(
            max(health.certificate for health in found),
            any(health.heading_for_linear_regret for health in found),
        )
