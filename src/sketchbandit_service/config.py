"""The settings of a bandit, and the policy that is built from them."""

import inspect
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from types import NoneType
from typing import Any, Self

from sketchbandit.errors import SketchBanditError
from sketchbandit.estimate import Estimate
from sketchbandit.explore import UCB, Explore
from sketchbandit.explore.base import RULES
from sketchbandit.features.features import KINDS, MOST_REWARDS
from sketchbandit.features.fitting import MOST
from sketchbandit.policy import Confidence, PerAction, Policy
from sketchbandit.policy.recipes import RECIPES, build, parameters, recipe
from sketchbandit_service.costs import DEFAULT_SIZE, Shape, held_bytes
from sketchbandit_service.exploring import kept_settings, rule_from, rule_settings
from sketchbandit_service.problems import Invalid, Problem, TooLarge
from sketchbandit_service.reward_models import check_reward, kept_model
from sketchbandit_service.settings import MIB, Limits
from sketchbandit_service.types import AnyPolicy, Json, JsonObject

ESTIMATE, NONE = "estimate", "none"
"""What to do with propensities that take time: estimate them after the answer, or leave them out."""
_KEPT = ("ridge", "scaling", "intercept")
_BESIDE = ("explore", "rewards", "forget")
"""Settings that clients give beside the parameters of the policy, not among them."""
_WITHOUT_EFFECT = {("adaptive", "seed")}
"""Parameters that are taken and do nothing: the service draws with a generator of its own."""
_PLAIN = (str, bool, int, float)
_WARM_UP_BYTES = 8 * (MOST + MOST_REWARDS)  # per feature: arms kept of the requests, and arms rewarded
_MOST = 1e50  # the largest number in the settings; its square is far from overflow
_BEFORE = {"ridge": 1.0, "scaling": None, "intercept": False, "explore": None}
"""The defaults of bandits whose record has none: those created by version 0.9 and before."""


OF_BANDIT = (
    "dim",
    "reward_timeout",
    "default_reward",
    "max_open",
    "log_arms",
    "slates",
    "propensities",
    "actions",
    "arm_dim",
)
"""Settings that belong to the bandit and do not change with its policy. All others are the policy's."""
_LATER = ("rewards", "forget", "arm_dim")
"""Settings that earlier versions do not know. Unset ones are not written, so those can read the rest."""
_KINDS: dict[str, type | tuple[type, ...]] = {
    "dim": int,
    "policy": str,
    "parameters": dict,
    "reward_timeout": (int, float, NoneType),
    "default_reward": (int, float, NoneType),
    "max_open": int,
    "exploration": (int, float),
    "log_arms": bool,
    "slates": bool,
    "explore": (dict, NoneType),
    "propensities": str,
    "actions": (list, NoneType),
    "defaults": dict,
    "rewards": (dict, NoneType),
    "forget": (int, float, NoneType),
    "arm_dim": (int, NoneType),
}
"""The type of each setting, as it is stored."""


@dataclass(frozen=True)
class BanditConfig:
    """The settings of a bandit. They do not change while it exists."""

    dim: int
    policy: str = "adaptive"
    parameters: Mapping[str, Json] = field(default_factory=dict)
    reward_timeout: float | None = 3600.0
    default_reward: float | None = 0.0
    max_open: int = 100_000
    exploration: float = 0.0
    log_arms: bool = False
    slates: bool = False
    explore: Mapping[str, Json] | None = None
    """In the form of ``exploring.rule_settings``."""
    propensities: str = ESTIMATE
    actions: list[str] | None = None
    """The actions it begins with. None: it chooses among arms."""
    defaults: dict[str, Any] = field(default_factory=dict)
    """Ridge, scaling, intercept, baseline and rule of the policy where the client gave none, as they were
    when the bandit was created. Later versions may have other defaults. For anything missing here the policy
    has its own. ``one_clock``, with actions: whether each reward makes the models of all actions forget."""
    rewards: Mapping[str, Json] | str | None = None
    """In the form of ``reward_models.kept_model``. None: the default; up to version 0.12 that is linear."""
    forget: float | None = None
    """As clients write it.

    Up to 1: a factor per reward. Above 1: a half-life in rewards. None: no forgetting.
    """
    arm_dim: int | None = None
    """Features of a stored arm, if not ``dim``. Together with a context they become ``dim`` features."""

    @property
    def stored_dim(self) -> int:
        """Features of a stored arm."""
        return self.dim if self.arm_dim is None else self.arm_dim

    @property
    def model(self) -> Estimate:
        """The reward model before anything is learned."""
        found: Estimate = build(self.policy, 2, **self._settings()).estimate
        return found

    @property
    def rule(self) -> Explore:
        """The rule by which arms are chosen."""
        return rule_from(self.explore or self.defaults.get("explore"), self.exploration)

    @property
    def shape(self) -> Shape:
        """What the costs of the bandit depend on. It takes a while to compute."""
        has_models = self.actions is not None
        return Shape.of(self.policy, self.dim, self.parameters, self.rule, has_models=has_models)

    def to_json(self) -> str:
        """The settings as text, for the journal."""
        said = asdict(self)
        unsaid = [name for name in _LATER if said[name] is None]
        return json.dumps({name: said[name] for name in said if name not in unsaid}, sort_keys=True)

    @classmethod
    def from_json(cls, text: str) -> Self:
        """Read what ``to_json`` has written."""
        try:
            saved = json.loads(text)
            unknown = [name for name in saved if name not in cls.__dataclass_fields__]
        except (TypeError, ValueError) as error:
            raise SketchBanditError(f"the settings are not JSON ({error}): {text!r:.80}") from error
        if not isinstance(saved, dict) or "dim" not in saved or unknown:
            wrong = f"has an unknown field {unknown[0]!r}" if unknown else "has no field 'dim'"
            raise SketchBanditError(f"the settings are not those of a bandit: {text!r:.80} {wrong}")
        made = cls(**{"defaults": _BEFORE, **saved})
        if isinstance(made.defaults, dict) and "baseline" not in {**made.defaults, **dict(made.parameters)}:
            before = {"baseline": False, **({"one_clock": False} if made._has_clocks else {})}
            made = replace(made, defaults={**before, **made.defaults})  # a record of 0.14 or before
        for name, kind in _KINDS.items():
            if not isinstance(getattr(made, name), kind) or isinstance(getattr(made, name), bool) != (
                kind is bool
            ):
                raise SketchBanditError(
                    f"the settings are not those of a bandit: {name} is {getattr(made, name)!r:.80}"
                )
        return made

    @property
    def of_policy(self) -> JsonObject:
        """The settings of the policy."""
        return {name: value for name, value in asdict(self).items() if name not in OF_BANDIT}

    def with_policy(self, settings: Mapping[str, Any]) -> "BanditConfig":
        """The same bandit with another policy. Settings that are not given have their defaults."""
        kept = {name: getattr(self, name) for name in OF_BANDIT}
        return BanditConfig(**kept, **settings)

    def differences(self, other: "BanditConfig") -> str:
        """The given settings that differ, in words. Empty if none does."""
        mine, theirs = asdict(self), asdict(other)
        return ", ".join(
            f"{name} is {value!r}, not {theirs[name]!r}"
            for name, value in mine.items()
            if value != theirs[name] and name != "defaults"
        )

    def checked(self, limits: Limits) -> "BanditConfig":
        """The settings as they are stored.

        Refuses a policy that cannot be built or may outgrow the limits.
        """
        _check_numbers("exploration", self.exploration)
        _check_numbers("explore", self.explore)
        _check_numbers("rewards", self.rewards)
        _check_numbers("forget", self.forget)
        given = replace(
            self,
            explore=rule_settings(self.explore, self.exploration),
            rewards=kept_model(self.rewards),
            arm_dim=None if self.arm_dim == self.dim else self.arm_dim,
        )
        try:
            given._check(limits)
            made = replace(given, defaults=given._defaults_of_today())
            is_warming_up = made._build(2).is_warming_up  # dim 2 is enough to see if the values are allowed
            if self.default_reward is not None:
                check_reward(made.model, self.default_reward, "default_reward: ")
        except Problem:
            raise
        except (SketchBanditError, TypeError, ValueError, ArithmeticError) as error:
            text = str(error)
            raise Invalid(text if self.policy in text else f"{self.policy}: {text}") from error
        made._check_bytes(limits, _WARM_UP_BYTES * self.dim if is_warming_up else 0)
        return made

    def _check(self, limits: Limits) -> None:
        """Check what can be checked before anything is allocated."""
        recipe_of(self.policy)
        if self.dim > limits.dim:
            raise TooLarge(f"dim is {self.dim}; this server allows up to {limits.dim}")
        if self.arm_dim is not None and self.actions is not None:
            raise Invalid("arm_dim is for stored arms, and a bandit with actions has none; leave arm_dim out")
        if self.stored_dim > self.dim:
            raise Invalid(f"arm_dim is {self.arm_dim}, but dim is {self.dim}; give an arm_dim of at most dim")
        ridge = self.parameters.get("ridge", 1.0)
        if not isinstance(ridge, (int, float)) or not 1e-9 <= ridge <= 1e12:
            raise Invalid(f"ridge must be between 1e-9 and 1e12, got {ridge!r}")
        if (scaling := self.parameters.get("scaling")) not in KINDS:
            raise Invalid(f'scaling must be "auto", "rows", "columns" or null, got {scaling!r:.80}')
        intercept = self.parameters.get("intercept", False)
        if not isinstance(intercept, (int, float)) or not 0.0 <= intercept <= limits.magnitude:
            raise Invalid(
                "intercept must be true, false or a number (the constant) from 0 to "
                f"{limits.magnitude:g}, got {intercept!r:.80}"
            )
        if not isinstance(baseline := self.parameters.get("baseline", False), bool):
            raise Invalid(
                "baseline must be true (learn from rewards less their mean) or false (learn from them as "
                f"they are), got {baseline!r:.80}; leave it out for the default"
            )
        _check_numbers("parameters", self.parameters)
        self._check_size()
        self.check_memory(limits, self._models)
        for name in _BESIDE:
            if any(given.partition(".")[0] == name for given in self.parameters):
                raise Invalid(f"{name} is a setting of its own; give it beside parameters, not inside")
        own = [name for name in parameters(self.policy) if name not in _BESIDE]
        for name in self.parameters:
            if name not in own:
                takes = ", ".join(one for one in own if (self.policy, one) not in _WITHOUT_EFFECT)
                raise Invalid(f"{self.policy} has no setting {name!r:.80}; parameters can be {takes}")

    def _defaults_of_today(self) -> JsonObject:
        """The defaults of the policy for settings that were not given, as far as JSON can hold them."""
        own = inspect.signature(recipe(self.policy).make).parameters
        unsaid = [name for name in _KEPT if name in own and name not in self.parameters]
        found = {name: own[name].default for name in unsaid}
        if self._has_clocks:
            found["one_clock"] = True
        if "baseline" not in self.parameters:  # recipes of users need not know it
            found["baseline"] = build(self.policy, 2, **self._settings())._can_have_baseline
        if "ridge" in found and found["ridge"] is None:  # it depends on the dimension
            found["ridge"] = build(self.policy, self.dim, **self._parameters()).ridge
        found = {name: value for name, value in found.items() if value is None or isinstance(value, _PLAIN)}
        rule = build(self.policy, 2, **self._parameters()).explore
        kept = None if isinstance(rule, UCB) else kept_settings(rule)
        if "explore" in own and type(rule) in RULES.built_in.values():
            told = {**self._parameters(), "explore": rule_from(kept, 0.0)}
            if build(self.policy, 2, **told).explore.is_like(rule):
                found["explore"] = kept
        return found

    @property
    def _has_clocks(self) -> bool:
        """Whether several models forget."""
        return self.actions is not None and self.forget is not None

    @property
    def _models(self) -> int:
        return 1 if self.actions is None else len(self.actions)

    def _check_size(self) -> None:
        size = self.parameters.get("size")
        if size is not None and (not isinstance(size, int) or isinstance(size, bool)):
            raise Invalid(f"size must be an integer, got {size!r:.80}")
        if self.policy == "cbrap" and size is not None and size > max(self.dim, DEFAULT_SIZE):
            raise Invalid(
                f"size is {size}, but a projection of arms of dim {self.dim} has no more directions than "
                f"that; give a size up to {max(self.dim, DEFAULT_SIZE)}"
            )

    def check_memory(self, limits: Limits, models: int) -> None:
        """Refuse this many models if they may need more memory than the server allows."""
        if models > limits.actions:
            raise TooLarge(f"{models} actions, retired ones included; a bandit has up to {limits.actions}")
        shape, most = self.shape, limits.bandit_bytes
        if (held := held_bytes(shape, models)) <= most:
            return
        of, settings = (f"{models} models of " if models > 1 else ""), f"dim {self.dim}"
        if shape.turns_exact and not shape.is_projected:
            why = " if the data force it to be exact"
            remedy = (
                "use soful or cbscfd with a fixed size, or start the server with a larger --max-bandit-mib"
            )
        else:
            settings, why, remedy = f"size {shape.size} and {settings}", "", "use a smaller size"
        raise TooLarge(
            f"{of}{self.policy} with {settings} can grow to {held // MIB:,} MiB{why}, and this server "
            f"allows {most // MIB:,}; {remedy}"
        )

    def _check_bytes(self, limits: Limits, warm_up: int) -> None:
        """Check the memory of the policy as it will be built, and of the arms of its warm-up."""
        self.check_memory(limits, self._models)
        if warm_up and (held := warm_up + held_bytes(self.shape, self._models)) > limits.bandit_bytes:
            raise TooLarge(
                f"the arms of a warm-up with dim {self.dim} can grow to {held // MIB:,} MiB, and this "
                f'server allows {limits.bandit_bytes // MIB:,}; set the parameter scaling to "rows", which '
                "needs no warm-up"
            )

    def build(self) -> Any:
        """Build a new policy, or a model for every action: which of them, the caller knows."""
        return self._build(self.dim)

    def _build(self, dim: int) -> AnyPolicy:
        def make() -> Policy:
            made = build(self.policy, dim, **self._settings())
            if "baseline" in self.defaults:
                made._set_baseline(self.defaults["baseline"])
            return made

        if self.actions is None:
            return make()
        made = PerAction(self.actions, make)
        if not self.defaults.get("one_clock", True):
            made._forget_apart()
        return made

    def with_rule(self, policy: AnyPolicy) -> AnyPolicy:
        """Give the policy the rule of these settings. Snapshots of earlier versions do not hold it."""
        rule = self._build(2).explore  # the rule does not depend on the dimension
        if not policy.explore.is_like(rule):
            policy.explore = rule
        return policy

    def _settings(self) -> dict[str, Any]:
        own = [name for name in parameters(self.policy) if name != "baseline"]  # see ``_build``
        taken = {name: value for name, value in self.defaults.items() if name in own}
        if self.explore is not None or self.exploration or "explore" in taken:
            taken["explore"] = self.rule
        return {**taken, **self._parameters()}

    def _parameters(self) -> dict[str, Any]:
        settings: dict[str, Any] = dict(self.parameters)
        if self.rewards is not None:
            settings["rewards"] = self.rewards
        if self.forget is not None:
            settings["forget"] = self.forget
        if isinstance(settings.get("beta"), dict):
            settings["beta"] = Confidence(**settings["beta"])
        return settings


def recipe_of(name: object) -> None:
    """Refuse an unknown policy."""
    if not isinstance(name, str) or name not in RECIPES:
        raise Invalid(f"unknown policy {name!r:.80}; choose from {', '.join(RECIPES)}")


def _check_numbers(name: str, value: Json) -> None:
    """Refuse numbers too large to compute with, at any depth of the settings."""
    if isinstance(value, dict):
        for key, inner in value.items():
            _check_numbers(str(key), inner)
    elif isinstance(value, list):
        for inner in value:
            _check_numbers(name, inner)
    elif isinstance(value, (int, float)) and not abs(value) <= _MOST:  # catches NaN too
        raise Invalid(f"{name:.80} is {value!r:.40}; numbers in the settings can be up to {_MOST:g} in size")
