"""Settings of a bandit: whatever they are, they are refused with a reason or work, within their memory."""

import json
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sketchbandit.errors import SketchBanditError
from sketchbandit.estimate.base import MODELS
from sketchbandit.explore.base import RULES
from sketchbandit.policy.recipes import RECIPES, parameters
from sketchbandit.registry import setting_names
from sketchbandit_service.config import BanditConfig
from sketchbandit_service.problems import Invalid, TooLarge
from sketchbandit_service.settings import MIB, Limits

pytestmark = pytest.mark.filterwarnings("ignore::sketchbandit.SketchTooSmallWarning")
DIM = 5
SMALL = Limits(bandit_bytes=MIB)
THEOREM = {"noise": 0.1, "theta_norm": 1.0, "arm_norm": 1.0, "delta": 0.01}
odd = st.one_of(
    st.sampled_from(
        [0, -1, 0.5, 1e-300, 1e9, 1e49, 1e200, 1e308, -1e200, 10**30, 10**400, True, False, None]
    ),
    st.sampled_from(["nan", "inf", "1", "", "auto", "rows", "float32", "int8", float("nan"), float("inf")]),
    st.sampled_from([[], [1], {}, {"a": 1}, {"a": {"b": [1e300]}}, THEOREM, {**THEOREM, "noise": 1e200}]),
    st.integers(),
    st.floats(),
    st.text(max_size=5),
)


def played(config: BanditConfig, rounds: int) -> int:
    """Play, and tell the most bytes that the policy held."""
    policy, random, most = config.build(), np.random.default_rng(0), 0
    for number in range(rounds):
        arms = random.standard_normal((3, config.dim))
        asked = arms if config.actions is None else arms[0]
        index = int(policy.rank(asked, random=random, probabilities=False).index[0])
        learned = (arms[index],) if config.actions is None else (asked, policy.actions[index])
        policy.update(*learned, float(random.random()))
        if number % 5 == 0 or number > rounds - 40:
            most = max(most, policy.nbytes)
    return most


def refused_or_works(**given: Any) -> None:
    """No third way."""
    try:
        config = BanditConfig(dim=DIM, **given).checked(SMALL)
    except (Invalid, TooLarge):
        return
    played(BanditConfig.from_json(config.to_json()), 8)


@pytest.mark.parametrize("policy", RECIPES)
@settings(max_examples=150)
@given(data=st.data())
def test_odd_parameters_are_refused_or_work(policy: str, data: st.DataObject) -> None:
    """Of every policy."""
    name = data.draw(st.sampled_from([*parameters(policy), "unknown"]))
    refused_or_works(policy=policy, parameters={name: data.draw(odd)})


@pytest.mark.parametrize("rule", RULES.built_in)
@settings(max_examples=60)
@given(data=st.data())
def test_odd_settings_of_a_rule_are_refused_or_work(rule: str, data: st.DataObject) -> None:
    """Of every rule, with models for actions too."""
    name = data.draw(st.sampled_from([*setting_names(RULES.named(rule)), "unknown"]))
    actions = data.draw(st.sampled_from([None, ["a", "b"]]))
    refused_or_works(policy="adaptive", explore={"rule": rule, name: data.draw(odd)}, actions=actions)


@pytest.mark.parametrize("model", MODELS.built_in)
@settings(max_examples=25)
@given(data=st.data())
def test_odd_settings_of_a_model_are_refused_or_work(model: str, data: st.DataObject) -> None:
    """Of every reward model, with models for actions too."""
    name = data.draw(st.sampled_from([*setting_names(MODELS.named(model)), "unknown"]))
    actions = data.draw(st.sampled_from([None, ["a", "b"]]))
    refused_or_works(policy="soful", rewards={"model": model, name: data.draw(odd)}, actions=actions)


@given(odd)
def test_odd_policies_and_rules_are_refused_or_work(value: Any) -> None:
    """Wherever a name or a number is expected."""
    refused_or_works(policy=value)
    refused_or_works(explore=value)
    refused_or_works(explore={"rule": value})
    refused_or_works(exploration=value)
    refused_or_works(rewards=value)
    refused_or_works(rewards={"model": value})
    refused_or_works(forget=value)


def test_numbers_out_of_reach_are_named() -> None:
    """However deep they stand."""
    with pytest.raises(Invalid, match=r"inflation is 1e\+200; numbers in the settings can be up to 1e\+50"):
        BanditConfig(dim=2, parameters={"inflation": 1e200}).checked(SMALL)
    with pytest.raises(Invalid, match="noise is nan"):
        BanditConfig(dim=2, explore={"rule": "ucb", "beta": {**THEOREM, "noise": float("nan")}}).checked(
            SMALL
        )


# -- memory -----------------------------------------------------------------------------------------------


def largest_dim(limits: Limits, **given: Any) -> int:
    """The largest dimension that is allowed."""
    low, high = 1, 4096
    while high - low > 1:
        middle = (low + high) // 2
        try:
            BanditConfig(dim=middle, **given).checked(limits)
        except TooLarge:
            high = middle
        else:
            low = middle
    return low


EXACT = {"scaling": None, "intercept": False}
SETTINGS: dict[str, dict[str, Any]] = {
    "oful": {"policy": "oful", "explore": "ucb"},
    "oful, draws": {"policy": "oful", "explore": "thompson"},
    "oful, theorem": {"policy": "oful", "parameters": {"beta": THEOREM}},
    "adaptive": {"policy": "adaptive", "parameters": EXACT},
    "adaptive, size": {"policy": "adaptive", "parameters": {**EXACT, "size": 30}},
    "adaptive, huge size": {"policy": "adaptive", "parameters": {**EXACT, "size": 10**9}},
    "dbslinucb, huge size": {"policy": "dbslinucb", "parameters": {"size": 10**9}},
    "adaptive, warm-up": {"policy": "adaptive"},
    "dbslinucb": {"policy": "dbslinucb", "parameters": {"size": 10}, "explore": "thompson"},
    "soful": {"policy": "soful", "parameters": {"size": 20}},
    "soful, large": {"policy": "soful", "parameters": {"size": 90}, "explore": "thompson"},
    "soful, theorem": {"policy": "soful", "parameters": {"size": 60, "beta": THEOREM}},
    "soful, clicks": {"policy": "soful", "parameters": {"size": 20}, "rewards": "logistic"},
    "soful, forgets": {"policy": "soful", "parameters": {"size": 20}, "forget": 0.9},
    "cbscfd": {"policy": "cbscfd", "parameters": {"size": 40}, "explore": "thompson"},
    "cbrap": {"policy": "cbrap", "parameters": {"size": 50}},
    "cbrap, draws": {"policy": "cbrap", "parameters": {"size": 100}, "explore": "thompson"},
    "actions": {"policy": "adaptive", "parameters": EXACT, "actions": ["a", "b", "c"]},
}


@pytest.mark.parametrize("name", SETTINGS)
def test_what_is_allowed_stays_within_the_limit(name: str) -> None:
    """At the largest dimension that is, after any number of rounds; and the limit is not far from that."""
    limits = Limits(bandit_bytes=MIB)
    given = SETTINGS[name]
    dim = largest_dim(limits, **given)
    most = played(BanditConfig(dim=dim, **given).checked(limits), min(3 * dim, 600))
    assert MIB / 12 < most <= MIB
    with pytest.raises(TooLarge, match=r"can grow to .* MiB.* and this server allows 1;"):
        BanditConfig(dim=4096, **given).checked(limits)


def test_every_policy_is_among_them() -> None:
    """So that nobody forgets to count a new one."""
    assert {given["policy"] for given in SETTINGS.values()} == set(RECIPES)


def test_a_projection_to_more_directions_than_there_are_is_refused() -> None:
    """Each arm would take its size, whatever its dimension; nothing is allocated."""
    with pytest.raises(Invalid, match=r"size is 26000000, but .* give a size up to 50"):
        BanditConfig(dim=1, policy="cbrap", parameters={"size": 26_000_000}).checked(Limits())
    with pytest.raises(TooLarge, match=r"cbrap with size 30000 and dim 30000 can grow to .* smaller size"):
        BanditConfig(dim=30_000, policy="cbrap", parameters={"size": 30_000}).checked(Limits())
    BanditConfig(dim=1, policy="cbrap").checked(Limits())


@pytest.mark.parametrize("size", [10**8, 10**30])
@pytest.mark.parametrize("policy", ["soful", "cbscfd", "cbrap"])
def test_a_huge_size_is_refused_before_anything_is_allocated(policy: str, size: int) -> None:
    """Where it is fixed; the others never hold more rows than there are columns."""
    with pytest.raises((TooLarge, Invalid)):
        BanditConfig(dim=2, policy=policy, parameters={"size": size}).checked(Limits())


# -- files --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "the settings are not JSON"),
        ("{", "the settings are not JSON"),
        ("[]", "has no field 'dim'"),
        ("3", "the settings are not"),
        ('{"policy": "oful"}', "has no field 'dim'"),
        ('{"dim": 2, "colour": 1}', "has an unknown field 'colour'"),
        ('{"dim": "2"}', "dim is '2'"),
        ('{"dim": true}', "dim is True"),
        ('{"dim": 2, "parameters": []}', "parameters is \\[\\]"),
        ('{"dim": 2, "slates": 1}', "slates is 1"),
        ('{"dim": 2, "actions": "a"}', "actions is 'a'"),
    ],
)
def test_settings_that_are_damaged_are_named(text: str, message: str) -> None:
    """By the field, as an error of the package."""
    with pytest.raises(SketchBanditError, match=message):
        BanditConfig.from_json(text)


def test_settings_come_back_from_a_file() -> None:
    """Those that were left out as they were in versions before."""
    config = BanditConfig(dim=3, explore={"rule": "ucb"}, actions=["a"], reward_timeout=None).checked(
        Limits()
    )
    assert BanditConfig.from_json(config.to_json()) == config
    before = {name: value for name, value in json.loads(config.to_json()).items() if name != "defaults"}
    assert BanditConfig.from_json(json.dumps(before)).defaults["scaling"] is None


def test_the_parameters_in_a_refusal_can_be_given() -> None:
    """All that the list names, and no rule, model or forgetting; a seed only where it does something."""
    for policy in RECIPES:
        with pytest.raises(Invalid, match="parameters can be") as refusal:
            BanditConfig(dim=DIM, policy=policy, parameters={"sise": 3}).checked(Limits())
        listed = str(refusal.value).partition("parameters can be ")[2].split(", ")
        assert {"ridge", "beta", "scaling", "intercept"} <= {*listed}
        assert not {"explore", "rewards", "forget"} & {*listed}
        assert ("seed" in listed) == (policy == "cbrap")


def test_a_seed_of_the_default_policy_has_no_effect() -> None:
    """It is taken, because clients of earlier versions may send it; the choices are those without it."""
    played_with = []
    for parameters_given in ({}, {"seed": 1}):
        policy = BanditConfig(dim=DIM, parameters=parameters_given).checked(Limits()).build()
        random, arms = np.random.default_rng(0), np.eye(DIM)
        played_with.append([int(policy.rank(arms, random=random).index[0]) for _ in range(20)])
    assert played_with[0] == played_with[1]
    assert len({*played_with[0]}) > 1
