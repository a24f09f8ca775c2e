"""Reward models by name: in recipes by name, in experiments, and what is refused before any work."""

from typing import Any

import numpy as np
import pytest

import sketchbandit as sb
from sketchbandit.estimate.base import MODELS, model_of, model_settings
from sketchbandit.policy.recipes import RECIPES, build
from sketchbandit.registry import setting_names
from sketchbandit.simulation import environments, policies
from sketchbandit.simulation.loop import play
from sketchbandit.simulation.specs import Spec, parse, spec

SETTINGS: dict[str, dict[str, Any]] = {
    "linear": {},
    "logistic": {"theta_norm": 2.0, "arm_norm": 1.5, "step": 0.5},
    "poisson": {"theta_norm": 2.0, "arm_norm": 1.5, "step": 0.5},
    "robust": {"moment": 1.2, "scale": 0.5, "threshold": 2.0, "caution": 0.0},
}


@pytest.mark.parametrize("name", MODELS.built_in)
def test_a_name_and_settings_are_the_model(name: str) -> None:
    """Every setting arrives; what a model tells of itself makes the same one again."""
    given = SETTINGS[name]
    assert set(given) == set(setting_names(MODELS.named(name)))
    made = model_of({"model": name, **given})
    assert model_settings(made) == {"model": name, **given}
    assert model_of(made) is made
    assert type(model_of(name)) is MODELS.named(name)
    for recipe in RECIPES:
        dotted = {f"rewards.{key}": value for key, value in given.items()}
        built = build(recipe, 6, **{"rewards": name, "beta": 0.5, **dotted})
        assert model_settings(built.estimate) == model_settings(made)
        mapped = build(recipe, 6, rewards={"model": name, **given}, beta=0.5)
        assert model_settings(mapped.estimate) == model_settings(made)


def test_a_model_and_a_rule_keep_their_settings_apart() -> None:
    """Both have a scale: that of the rule is written as it is, that of the model with a dot."""
    settings = {"explore": "thompson", "scale": 3.0, "rewards": "robust", "rewards.scale": 0.5}
    made = build("soful", 6, **settings)
    assert (made.explore.scale, made.estimate.scale) == (3.0, 0.5)
    assert build("soful", 6, **{**settings, "rewards": sb.Robust(moment=2.0)}).estimate.settings() == {
        **sb.Robust(moment=2.0, scale=0.5).settings()
    }


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ("clicks", "unknown reward model 'clicks'; choose from linear, logistic, poisson, robust"),
        ({"model": ["logistic"]}, "unknown reward model"),
        ({"scale": 1.0}, 'rewards must be a reward model, its name, or a mapping such as {"model": "robust"'),
        (3, "rewards must be a reward model"),
        ({"model": "robust", "step": 1.0}, "robust has no setting 'step'; it takes moment, scale"),
        ({"model": "linear", "step": 1.0}, "linear has no setting 'step'; it takes none"),
        ({"model": "robust", "moment": 1.0}, "moment must be finite, above 1 and at most 2, got 1"),
        ({"model": "robust", "scale": float("nan")}, "scale"),
        ({"model": "logistic", "theta_norm": -1.0}, "theta_norm"),
        ({"model": "poisson", "step": "long"}, "step"),
    ],
)
def test_bad_models_are_refused(given: Any, says: str) -> None:
    """With the value seen and what may be written."""
    with pytest.raises((sb.InputError, sb.InputTypeError)) as caught:
        build("oful", 3, rewards=given)
    assert says in str(caught.value)


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ({"rewards": "robust", "rewards.speed": 1}, "no setting 'rewards.speed'; it takes .*rewards.moment"),
        ({"rewards.scale": 1}, "rewards.scale is a setting of a reward model; name the model too"),
        ({"rewards": "robust", "explore.rewards.scale": 1}, "no setting 'explore.rewards.scale'"),
        ({"rewards": "robust", "scale": 1}, "no setting 'scale'"),
    ],
)
def test_settings_that_belong_to_nobody(settings: dict[str, Any], says: str) -> None:
    """None is dropped in silence."""
    with pytest.raises(sb.InputError, match=says):
        build("oful", 3, **settings)


# -- experiments ----------------------------------------------------------------------------------------


def test_an_experiment_plays_the_policy_that_was_named() -> None:
    """The spec, read back from JSON's lists, and the same policy by hand choose alike."""
    asked = parse("oful:rewards=logistic,rewards.theta_norm=2,beta=0.3,ridge=2")
    again = Spec.from_list([asked.name, [list(setting) for setting in asked.settings]])
    clicks = environments.build(spec("gaussian", dim=8, arms=4, clicks=0.3), seed=5)
    by_hand = sb.oful(8, ridge=2.0, beta=0.3, rewards=sb.Logistic(theta_norm=2.0))
    named = policies.build(again, 8)
    for _ in zip(play(named, clicks, 40), play(by_hand, clicks, 40), strict=True):
        pass
    assert np.array_equal(named.theta, by_hand.theta)
    assert named.theta.any()


@pytest.mark.parametrize("forget", [0.99, 70])
def test_an_experiment_plays_with_forgetting(forget: float) -> None:
    """A factor or a half-life, in a spec as by hand; every recipe takes it, and figures name it."""
    asked = parse(f"oful:forget={forget},rewards=robust,beta=0.3")
    rough = environments.build(spec("gaussian", dim=8, arms=4, outliers=0.1, switch=20), seed=5)
    by_hand = sb.oful(8, beta=0.3, rewards=sb.Robust(), forget=forget)
    named = policies.build(asked, 8)
    for _ in zip(play(named, rough, 40), play(by_hand, rough, 40), strict=True):
        pass
    assert np.array_equal(named.theta, by_hand.theta)
    assert named.sketch.effective_count == by_hand.sketch.effective_count < 40
    assert policies.label(asked) == f"OFUL, β = 0.3, forget = {forget}, Robust"
    policies.warm_up(asked)
    for recipe in RECIPES:
        assert build(recipe, 6, forget=forget).forget == by_hand.forget


@pytest.mark.parametrize("forget", [0, -0.5, "often", True, "nan"])
def test_bad_forgetting_is_refused(forget: Any) -> None:
    """Before any work, with what may be written."""
    with pytest.raises(sb.InputError, match=r"forget.*0\.999, or a half-life"):
        policies.check(spec("oful", forget=float("nan") if forget == "nan" else forget))


@pytest.mark.parametrize(
    ("text", "label"),
    [
        ("soful:rewards=logistic", "SOFUL, Logistic"),
        (
            "adaptive:rewards=robust,rewards.scale=0.1,explore=thompson",
            "Adaptive, Robust, scale = 0.1, Thompson",
        ),
        ("oful:rewards=linear", "OFUL, Linear"),
    ],
)
def test_figures_name_the_model(text: str, label: str) -> None:
    """Before the rule; and every such policy can be warmed up, whatever rewards it takes."""
    asked = parse(text)
    assert policies.label(asked) == label
    policies.check(asked)
    policies.warm_up(asked)


@pytest.mark.parametrize(
    ("environment", "model", "says"),
    [
        (spec("gaussian"), sb.Logistic(), "Logistic takes rewards from 0 to 1.*clicks=0.1 makes clicks"),
        (spec("gaussian"), sb.Poisson(), "Poisson takes counts"),
        (spec("classification", data="digits", degrees=2), sb.Logistic(), "Logistic takes"),
        (spec("gaussian", lift=2), sb.Logistic(), "lift says nothing without clicks"),
        (
            spec("gaussian", clicks=0.1, scale=2),
            sb.Logistic(),
            "scale says nothing without degrees or outliers",
        ),
    ],
)
def test_rewards_that_the_model_has_no_place_for(environment: Spec, model: Any, says: str) -> None:
    """Said before anything is played; the same with clicks is fine, and so are models that take anything."""
    with pytest.raises(sb.InputError, match=says):
        environments.check_rewards(environment, model)
    environments.check_rewards(environment.without("lift", "scale").with_settings(clicks=0.1), model)
    environments.check_rewards(spec("gaussian", noise=5), sb.Robust())


def test_titles_say_how_an_environment_is_varied() -> None:
    """Each variation in words."""
    assert environments.title(spec("classification", data="digits", switch=50, outliers=0.05)) == (
        "digits, another target after 50 rounds, 5% outliers"
    )
    assert environments.title(spec("gaussian", turn=90, degrees=1.5)) == (
        "synthetic, flat spectrum, theta* turns in 90 rounds, t(1.5) noise"
    )
