"""Reward models over HTTP: what may be written, which rewards are taken, and restarts to the bit."""

import json
import sqlite3
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import sketchbandit as sb
from sketchbandit.estimate.base import MODELS, model_of
from sketchbandit_service.checking import check, same
from sketchbandit_service.client import Client
from sketchbandit_service.client.calls import create
from sketchbandit_service.config import BanditConfig
from sketchbandit_service.settings import Limits
from tests.service.harness import AS_THEY_ARE, DIM, Service, crashing, error_of, in_loop, service

pytestmark = pytest.mark.filterwarnings("ignore::sketchbandit.SketchTooSmallWarning")
THEOREM = {"noise": 0.5, "theta_norm": 2.0, "arm_norm": 1.0, "delta": 0.1}
SETTINGS: dict[str, Any] = {
    "linear": "linear",
    "logistic": {"model": "logistic", "theta_norm": 2.0},
    "poisson": "poisson",
    "robust": {"model": "robust", "scale": 0.5, "moment": 1.2},
}


def clicked(random: np.random.Generator) -> float:
    """A reward of every model."""
    return float(random.random() < 0.4)


async def played(found: Service, alone: Any, rounds: range, arms_at_once: int = 4) -> None:
    """Decisions and clicks; the policy by hand learns the same, and tells the mean that was answered."""
    for seed in rounds:
        random = np.random.default_rng(seed)
        arms = random.standard_normal((arms_at_once, DIM))
        answer = (await found.decide(arms.tolist(), top=2)).json()
        for ranked in (answer, *answer["top"]):
            assert ranked["mean"] == pytest.approx(alone.mean(arms[ranked["index"]]), rel=1e-12)
        reward = clicked(random)
        assert (await found.reward(answer["decision"], reward)).status_code == 200
        alone.update(arms[answer["index"]], reward)


@pytest.mark.parametrize("name", MODELS.built_in)
@in_loop
async def test_a_bandit_is_the_policy_fed_by_hand(tmp_path: Path, name: str) -> None:
    """To the bit: live, after a kill with a snapshot behind it, and from the journal alone."""
    alone = sb.soful(DIM, size=2, explore=sb.UCB(0.3), rewards=model_of(SETTINGS[name]), baseline=True)
    settings: dict[str, Any] = {
        "policy": "soful",
        "parameters": {"size": 2},
        "explore": {"rule": "ucb", "beta": 0.3},
    }

    async def work(found: Service) -> None:
        await found.create(rewards=SETTINGS[name], **settings)
        await played(found, alone, range(25))
        await found.upkeep.snapshot(found.engine.bandit("b"))
        await played(found, alone, range(25, 40))
        assert same(found.engine.bandit("b").policy, alone)

    await crashing(tmp_path, work)
    async with service(tmp_path) as found:
        assert same(found.engine.bandit("b").policy, alone)
        assert (await found.stats())["reward_model"] == name
        await played(found, alone, range(40, 50))
        assert same(found.engine.bandit("b").policy, alone)
        assert (await found.create(rewards=SETTINGS[name], **settings)).status_code == 200
    assert all(finding.is_good for finding in check(tmp_path))


@pytest.mark.parametrize(
    "settings", [{"rewards": "logistic"}, {"rewards": "robust"}, {"forget": 0.9}], ids=str
)
@in_loop
@pytest.mark.usefixtures("short_warm_up")
async def test_a_warm_up_is_repeated_exactly(tmp_path: Path, settings: dict[str, Any]) -> None:
    """Scalings make a policy learn again, in the order of the journal; drawn by Thompson's rule."""

    async def work(found: Service) -> None:
        await found.create(**settings)
        for seed in range(45):  # past the end of the warm-up
            random = np.random.default_rng(seed)
            arms = random.standard_normal((5, DIM)) * [1.0, 1e3, 1e-2, 5.0]
            answer = (await found.decide(arms.tolist())).json()
            assert settings.get("rewards") != "logistic" or 0.0 <= answer["mean"] <= 1.0
            await found.reward(answer["decision"], clicked(random))
        assert not found.engine.bandit("b").policy.is_warming_up

    old = (await crashing(tmp_path, work)).engine.bandit("b").policy
    async with service(tmp_path) as found:
        assert same(found.engine.bandit("b").policy, old)
    assert old.theta.any()
    assert all(finding.is_good for finding in check(tmp_path))


@in_loop
async def test_every_action_has_the_model(tmp_path: Path) -> None:
    """Its mean is a probability; a restart gives the same models, later ones too."""
    alone = sb.PerAction(["a", "b"], lambda: sb.oful(DIM, explore=sb.UCB(0.3), rewards=sb.Logistic()))

    async def work(found: Service) -> None:
        await found.create(
            policy="oful", explore={"rule": "ucb", "beta": 0.3}, rewards="logistic", actions=["a", "b"]
        )
        await found.http.post("/v1/bandits/b/actions", json={"actions": ["c"]})
        alone.add("c")
        for seed in range(20):
            random = np.random.default_rng(seed)
            context = random.standard_normal(DIM)
            asked = {"context": context.tolist()}
            answer = (await found.http.post("/v1/bandits/b/decide", json=asked)).json()
            mean = alone.mean(context)[alone.actions.index(answer["action"])]
            assert answer["mean"] == pytest.approx(mean, rel=1e-12)
            reward = clicked(random)
            await found.reward(answer["decision"], reward)
            alone.update(context, answer["action"], reward)

    await crashing(tmp_path, work)
    async with service(tmp_path) as found:
        assert same(found.engine.bandit("b").policy, alone)


@pytest.mark.parametrize("settings", [{"forget": 0.9}, {"forget": 5, "rewards": "logistic"}])
@pytest.mark.parametrize("actions", [None, ["a", "b"]])
@in_loop
async def test_what_is_forgotten_is_forgotten_after_a_restart(
    tmp_path: Path, settings: dict[str, Any], actions: list[str] | None
) -> None:
    """To the bit, by arms and by actions; the stats tell how many rewards still count."""

    def one() -> sb.LinUCB:
        model = model_of(settings.get("rewards", "linear"))
        forget = settings["forget"]
        return sb.soful(DIM, size=2, explore=sb.UCB(0.3), rewards=model, forget=forget, baseline=True)

    alone: Any = one() if actions is None else sb.PerAction(actions, one)

    async def learned(found: Service, rounds: range) -> None:
        for seed in rounds:
            random = np.random.default_rng(seed)
            arms = random.standard_normal((3, DIM))
            asked = {"arms": arms.tolist()} if actions is None else {"context": arms[0].tolist()}
            answer = (await found.http.post("/v1/bandits/b/decide", json=asked)).json()
            told = (arms[answer["index"]],) if actions is None else (arms[0], answer["action"])
            reward = clicked(random)
            assert (await found.reward(answer["decision"], reward)).status_code == 200
            alone.update(*told, reward)

    async def work(found: Service) -> None:
        explore = {"rule": "ucb", "beta": 0.3}
        await found.create(
            policy="soful", parameters={"size": 2}, explore=explore, actions=actions, **settings
        )
        await learned(found, range(30))
        await found.upkeep.snapshot(found.engine.bandit("b"))
        await learned(found, range(30, 45))

    await crashing(tmp_path, work)
    async with service(tmp_path) as found:
        assert same(found.engine.bandit("b").policy, alone)
        await learned(found, range(45, 55))
        assert same(found.engine.bandit("b").policy, alone)
        stats = await found.stats()
        models = [alone] if actions is None else alone.policies.values()
        assert (stats["rounds"], stats["forget"]) == (55, settings["forget"])
        assert stats["effective_rounds"] == sum(model.sketch.effective_count for model in models) < 30
    assert all(finding.is_good for finding in check(tmp_path))


# -- bad input ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("model", "bad", "says"),
    [
        ("logistic", 1.5, "the reward is 1.5, but Logistic takes rewards from 0 to 1"),
        ("logistic", -0.1, "or use Linear"),
        ("poisson", -1.0, "the reward is -1, but Poisson takes counts"),
    ],
)
@in_loop
async def test_rewards_outside_the_range_change_nothing(
    tmp_path: Path, model: str, bad: float, says: str
) -> None:
    """422 and the remedy, alone, in a slate or in a batch; the decision waits on, and takes a good one."""
    async with service(tmp_path) as found:
        await found.create(rewards=model, slates=True, parameters=AS_THEY_ARE)
        decision = (await found.decide(top=2)).json()["decision"]
        before = found.engine.bandit("b").policy.dump()[0]
        pair = [{"position": 0, "reward": 1.0}, {"position": 1, "reward": bad}]
        for refused in (await found.reward(decision, bad), await found.rewards(decision, *pair)):
            status, message = error_of(refused)
            assert status == 422
            assert says in message
        batch = {"rewards": [{"decision": decision, "reward": bad}]}
        answer = (await found.http.post("/v1/bandits/b/reward/batch", json=batch)).json()["rewards"][0]
        assert answer["status_code"] == 422
        assert repr(found.engine.bandit("b").policy.dump()[0]) == repr(before)
        assert (await found.stats())["open"] == 1
        assert (await found.reward(decision, 1.0)).json()["status"] == "learned"


BAD: list[tuple[dict[str, Any], str]] = [
    ({"rewards": "clicks"}, "rewards: unknown reward model 'clicks'; choose from linear, logistic"),
    ({"rewards": 5}, 'a mapping such as {"model": "robust", "scale": 0.1}, got 5'),
    ({"rewards": []}, "a mapping such as"),
    ({"rewards": {"scale": 1}}, "a mapping such as"),
    ({"rewards": {"model": ["robust"]}}, "unknown reward model"),
    ({"rewards": {"model": "robust", "step": 1}}, "robust has no setting 'step'; it takes moment, scale"),
    ({"rewards": {"model": "robust", "moment": 1}}, "moment must be finite, above 1 and at most 2, got 1"),
    ({"rewards": {"model": "robust", "scale": "much"}}, "scale"),
    ({"rewards": {"model": "robust", "scale": 1e60}}, "numbers in the settings can be up to"),
    ({"rewards": {"model": "logistic", "theta_norm": -1}}, "theta_norm"),
    ({"rewards": "x" * 5000}, "unknown reward model"),
    ({"parameters": {"rewards": "logistic"}}, "rewards is a setting of its own; give it beside parameters"),
    ({"parameters": {"rewards.scale": 1}}, "rewards is a setting of its own; give it beside parameters"),
    ({"forget": 0}, "forget"),
    ({"forget": -0.5}, "forget"),
    ({"forget": "often"}, "forget"),
    ({"forget": True}, "forget"),
    ({"forget": 1e60}, "numbers in the settings can be up to"),
    ({"parameters": {"forget": 0.9}}, "forget is a setting of its own; give it beside parameters"),
    ({"rewards": "logistic", "default_reward": -1}, "default_reward: the reward is -1, but Logistic"),
    ({"rewards": "poisson", "default_reward": -1}, "default_reward: the reward is -1, but Poisson"),
    ({"rewards": "logistic", "parameters": {"beta": THEOREM}}, "give rewards=Logistic(theta_norm=2"),
    ({"rewards": "robust", "explore": {"rule": "ucb", "beta": THEOREM}}, "no theorem gives the radius"),
]


@in_loop
async def test_bad_models_are_refused(tmp_path: Path) -> None:
    """At creation, with what is wrong and what may be written; and nothing is created."""
    async with service(tmp_path) as found:
        for settings, says in BAD:
            status, message = error_of(await found.http.put("/v1/bandits/b", json={"dim": DIM, **settings}))
            assert status == 422
            assert says in message
            assert len(message) < 500
            assert not found.engine.registry.bandits


# -- settings -------------------------------------------------------------------------------------------


@in_loop
async def test_settings_are_shown_and_compared(tmp_path: Path) -> None:
    """In full; the same in other words is the same, another model is a conflict."""
    async with service(tmp_path) as found:
        await found.create(rewards={"model": "logistic", "theta_norm": 2})
        shown = (await found.http.get("/v1/bandits/b")).json()["rewards"]
        assert shown == {"model": "logistic", "theta_norm": 2.0, "arm_norm": 1.0, "step": None}
        assert (await found.create(rewards=shown)).status_code == 200
        for other in (None, "logistic", "poisson"):
            answer = await found.http.put("/v1/bandits/b", json={"dim": DIM, "rewards": other})
            assert answer.status_code == 409
            assert "rewards is" in answer.text
        await found.create("plain")
        assert (await found.http.get("/v1/bandits/plain")).json()["rewards"] is None
        stats = await found.stats("plain")
        assert (stats["reward_model"], stats["forget"], stats["effective_rounds"]) == ("linear", None, 0)


def test_settings_without_a_model_are_those_of_before() -> None:
    """0.12 knows no models: its settings mean linear rewards, and where there is none, none is written."""
    kept = BanditConfig(DIM).checked(Limits())
    said = json.loads(kept.to_json())
    assert not {"rewards", "forget"} & set(said)
    assert BanditConfig.from_json(json.dumps(said)) == kept
    assert kept.model.kind == "linear"
    with_model = BanditConfig(DIM, rewards="poisson", forget=700.0).checked(Limits())
    assert BanditConfig.from_json(with_model.to_json()) == with_model


@in_loop
async def test_a_model_that_was_tampered_with_is_not_guessed(tmp_path: Path) -> None:
    """Its bandit is out of service, with the reason; others are not affected."""
    async with service(tmp_path) as found:
        await found.create("b", rewards="robust")
        await found.create("other")
    with sqlite3.connect(tmp_path / "journal.sqlite") as connection:
        connection.execute("UPDATE sketchbandit_bandits SET config = replace(config, 'robust', 'rubust')")
    async with service(tmp_path) as found:
        status, message = error_of(await found.decide())
        assert (status, "rubust" in message) == (503, True)
        assert (await found.decide(name="other")).status_code == 200


def test_the_client_sends_models_of_the_library() -> None:
    """By name and settings; a class is refused at once."""
    body = json.loads(create("b", DIM, {"rewards": sb.Robust(scale=0.5)}).content or b"")
    assert body["rewards"] == {"model": "robust", **sb.Robust(scale=0.5).settings()}
    assert model_of(body["rewards"]).settings() == sb.Robust(scale=0.5).settings()
    assert json.loads(create("b", DIM, {"rewards": "poisson"}).content or b"")["rewards"] == "poisson"
    with Client("http://127.0.0.1:9") as client, pytest.raises(sb.InputTypeError, match="instance: Logistic"):
        client.create("b", DIM, rewards=sb.Logistic)
