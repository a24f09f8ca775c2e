"""Rewards of any location and unit, through the service: a constant added to all changes no decision."""

import json
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import sketchbandit as sb
from sketchbandit.policy.recipes import RECIPES, Recipe
from sketchbandit_service.checking import check
from sketchbandit_service.config import BanditConfig
from sketchbandit_service.problems import Invalid
from sketchbandit_service.settings import Limits
from tests.service.harness import DIM, Service, crashing, error_of, in_loop, service

NAMES = ["a", "b", "c"]
RULES: dict[str, Any] = {
    "ucb": {"rule": "ucb", "beta": 0.3},
    "ucb-auto": {"rule": "ucb", "beta": "auto"},
    "thompson": {"rule": "thompson", "scale": 0.2, "samples": 50},
    "thompson-auto": None,
    "inverse-gap": {"rule": "inverse-gap", "gamma": 30.0, "floor": 0.05},
    "epsilon-greedy": {"rule": "epsilon-greedy", "epsilon": 0.1},
    "greedy": "greedy",
}
AUTO = ["ucb-auto", "thompson-auto", "epsilon-greedy", "greedy"]
MODELS: dict[str, Any] = {"linear": None, "robust": {"model": "robust", "scale": 0.3}}
Change = Callable[[float], float]


class Played:
    """One bandit of arms and one of actions, over several lives; what they decided."""

    def __init__(self, state: Path, change: Change, **settings: Any) -> None:
        self._state, self._change = state, change
        self._default = change(-0.5)
        self._settings = {"propensities": "none", "reward_timeout": 1e9, **settings}
        self._late: list[tuple[str, str, float]] = []
        self.chosen: list[Any] = []

    async def live(self, rounds: range, *more: Callable[[Service], Any]) -> None:
        """Play some rounds on what an earlier life left, do something more, and be killed."""

        async def life(found: Service) -> None:
            kinds = {"arms": {}, "actions": {"actions": NAMES}}
            for name, kind in kinds.items():
                await found.create(name, default_reward=self._default, **self._settings, **kind)
            await self.play(found, rounds)
            for what in more:
                await what(found)

        await crashing(self._state, life)

    async def play(self, found: Service, rounds: range) -> None:
        """Some rounds of both bandits."""
        for seed in rounds:
            await self._round(found, seed)

    async def _round(self, found: Service, seed: int) -> None:
        """Decide; the reward of every third decision comes with a later one, and of every tenth never."""
        random = np.random.default_rng(seed)
        rows, noise = random.standard_normal((4, DIM)), 0.3 * random.standard_normal()
        for name, body in (("arms", {"arms": rows.tolist()}), ("actions", {"context": rows[0].tolist()})):
            decided = (await found.http.post(f"/v1/bandits/{name}/decide", json=body)).json()
            index = decided["index"] if name == "arms" else (*NAMES, "d").index(decided["action"])
            self.chosen.append(index)
            worth = rows[index, 0] if name == "arms" else rows[0, index] + 0.5 * index
            if len(self.chosen) % 10:
                self._late.append((name, decided["decision"], self._change(float(worth + noise))))
        if seed % 3 == 2:
            for name, decision, reward in self._late[::-1]:
                assert (await found.reward(decision, reward, name)).status_code == 200
            self._late = []


async def expired(found: Service) -> None:
    """All open decisions get the default reward."""
    for bandit in list(found.engine.registry.bandits.values()):
        for first in list(bandit.open):
            await found.engine.rewards.close(bandit, first, 0, "default", bandit.config.default_reward)
    await found.engine.journal.probe()


async def changed(found: Service) -> None:
    """An action comes, one is retired, and a candidate of today's defaults learns from now on."""
    await found.http.post("/v1/bandits/actions/actions", json={"actions": ["d"]})
    await found.http.post("/v1/bandits/actions/actions/retire", json={"actions": ["a"]})
    for name in ("arms", "actions"):
        settings = {"policy": "soful", "parameters": {"size": 3}, "explore": {"rule": "ucb", "beta": 0.3}}
        assert (await found.http.put(f"/v1/bandits/{name}/candidates/c", json=settings)).status_code == 201


async def snapshot(found: Service) -> None:
    """Of both."""
    for bandit in list(found.engine.registry.bandits.values()):
        await found.upkeep.snapshot(bandit)


async def promoted(found: Service) -> None:
    """The candidates decide."""
    for name in ("arms", "actions"):
        answer = await found.http.post(f"/v1/bandits/{name}/candidates/c/promote", json={})
        assert answer.status_code == 200, answer.text


async def decided(state: Path, change: Change, **settings: Any) -> list[Any]:
    """All decisions of three lives: after a replay, from a snapshot on, and of a promoted candidate."""
    played = Played(state, change, **settings)
    await played.live(range(9))
    await played.live(range(9, 18), expired, changed, snapshot)
    await played.live(range(18, 27), promoted, partial(played.play, rounds=range(27, 33)))
    assert all(finding.is_good for finding in check(state))
    return played.chosen


@pytest.mark.parametrize(("rule", "model"), [*((rule, "linear") for rule in RULES), ("thompson", "robust")])
@in_loop
async def test_a_constant_changes_no_decision(tmp_path: Path, rule: str, model: str) -> None:
    """For every rule: late rewards, defaults, kills, snapshots, actions that come and go, candidates."""
    settings = {"explore": RULES[rule], "rewards": MODELS[model], "forget": 40 if rule == "ucb" else None}
    found = [
        await decided(tmp_path / str(number), lambda reward, c=c: reward + c, **settings)  # type: ignore[misc]
        for number, c in enumerate((0.0, 1e6))
    ]
    assert found[0] == found[1]
    assert {0, 1, 2, 3} <= set(found[0])


@pytest.mark.parametrize("rule", AUTO)
@in_loop
async def test_the_unit_of_rewards_changes_no_decision(tmp_path: Path, rule: str) -> None:
    """Nor do cents instead of thousands, where the strength of the rule is "auto"."""
    found = []
    for number, (k, c) in enumerate(((1.0, 0.0), (1e-3, 2.5), (1e5, -1e7))):
        played = Played(tmp_path / str(number), lambda reward, k=k, c=c: k * reward + c, explore=RULES[rule])  # type: ignore[misc]
        await played.live(range(12), expired)
        await played.live(range(12, 21))
        found.append(played.chosen)
    assert found[0] == found[1] == found[2]


# -- what is untried is tried, and told -----------------------------------------------------------------


async def earned(found: Service, pays: dict[str, float], rounds: int, seed: int = 0) -> list[str]:
    """The actions that were decided for, in a world where all pay."""
    random, chosen = np.random.default_rng(seed), []
    for _ in range(rounds):
        context = (1.0 + 0.1 * random.standard_normal(DIM)).tolist()
        decided = (await found.http.post("/v1/bandits/b/decide", json={"context": context})).json()
        chosen.append(decided["action"])
        reward = pays[chosen[-1]] + 0.1 * float(random.standard_normal())
        await found.reward(decided["decision"], reward)
    return chosen


@pytest.mark.parametrize("seed", range(3))
@in_loop
async def test_a_better_action_that_is_added_is_adopted(tmp_path: Path, seed: int) -> None:
    """With the defaults: expected to pay the mean of all, it is tried within 20 decisions, and stays."""
    pays = {"a": 0.5, "b": 0.7, "c": 0.9, "better": 1.2}
    async with service(tmp_path) as found:
        await found.create(actions=NAMES, propensities="none")
        before = await earned(found, pays, 60, seed)
        assert before[40:].count("c") > 15
        await found.http.post("/v1/bandits/b/actions", json={"actions": ["better"]})
        after = await earned(found, pays, 60, seed + 100)
        assert "better" in after[:20]
        assert after[40:].count("better") > 15


GREEDY: dict[str, Any] = {
    "explore": "greedy",
    "parameters": {"baseline": False, "scaling": None, "intercept": False},
}


async def at_once(found: Service, body: dict[str, Any], count: int, name: str = "b") -> None:
    """So many equal decisions, each with a reward of 1."""
    asked = {"decisions": [body] * count}
    answer = (await found.http.post(f"/v1/bandits/{name}/decide/batch", json=asked)).json()
    given = {"rewards": [{"decision": one["decision"], "reward": 1.0} for one in answer["decisions"]]}
    done = (await found.http.post(f"/v1/bandits/{name}/reward/batch", json=given)).json()
    assert {one["status"] for one in done["rewards"]} == {"learned"}


@in_loop
async def test_the_stats_name_an_action_that_was_never_tried(tmp_path: Path) -> None:
    """The sentence says what to do, and the bandit is not healthy, unlike a candidate that is new."""
    async with service(tmp_path) as found:
        await found.create(actions=["good", "new"], **GREEDY)
        await at_once(found, {"context": [1.0] * DIM}, 210)
        await found.http.put("/v1/bandits/b/candidates/now", json={})
        stats = await found.stats()
        assert (stats["untried"], stats["is_healthy"], stats["baseline"]) == (["new"], False, None)
        assert "Action 'new' was never tried in the 210 rounds since it was added" in stats["health"]
        assert "floor" in stats["health"]
        assert [one["is_healthy"] for one in stats["candidates"]] == [True]
        await found.http.post("/v1/bandits/b/actions", json={"actions": ["x", "y"]})
        await at_once(found, {"context": [1.0] * DIM}, 210)
        stats = await found.stats()
        assert stats["untried"] == ["new", "x", "y"]
        assert stats["health"].endswith("Hardly ever tried, too: 'x', 'y'.")


@in_loop
async def test_the_stats_name_stored_arms_that_were_hardly_tried(tmp_path: Path) -> None:
    """By their ids, unless decisions have a context: then nobody knows which arms there are."""
    async with service(tmp_path) as found:
        arms = {name: np.eye(DIM)[place].tolist() for place, name in enumerate("wxyz")}
        hashed = {name: {"indices": [place], "values": [1.0]} for place, name in enumerate("wxyz")}
        for name in ("plain", "sparse", "users"):
            await found.create(name, **GREEDY)
            stored = {"arms": hashed if name == "sparse" else arms}
            assert (await found.http.put(f"/v1/bandits/{name}/arms", json=stored)).status_code == 200
        await at_once(found, {}, 205, "plain")
        await at_once(found, {}, 205, "sparse")
        assert (await found.stats("sparse"))["untried"] == ["x", "y", "z"]
        await at_once(found, {"context": [2.0, 2.0, 1.0, 1.0]}, 205, "users")
        plain, users = await found.stats("plain"), await found.stats("users")
        assert (plain["untried"], users["untried"]) == (["x", "y", "z"], [])
        said = "In 205 rounds these arms, or any like them, were hardly ever tried: x, y, z."
        assert said in plain["health"]
        assert (plain["is_healthy"], users["is_healthy"]) == (True, True)
        assert "hardly ever" not in users["health"]


@in_loop
async def test_the_stats_tell_the_baseline(tmp_path: Path) -> None:
    """The mean of the rewards learned, through the link; null without."""
    async with service(tmp_path) as found:
        await found.create("linear")
        await found.create("clicks", rewards="logistic")
        await found.create("off", parameters={"baseline": False})
        assert (await found.stats("linear"))["baseline"] == 0.0
        for number in range(4):
            for name in ("linear", "clicks", "off"):
                decided = (await found.decide(name=name)).json()
                await found.reward(decided["decision"], float(number % 2), name)
        told = [(await found.stats(name))["baseline"] for name in ("linear", "clicks", "off")]
        assert told == [0.5, pytest.approx(2.5 / 5), None]


# -- the setting ----------------------------------------------------------------------------------------


def built(**settings: Any) -> tuple[bool, Any]:
    """Whether a bandit with these settings has a baseline, and what its record says."""
    config = BanditConfig(DIM, **settings).checked(Limits())
    again = BanditConfig.from_json(config.to_json())
    assert again == config
    policy = again.build()
    model = policy if config.actions is None else policy[config.actions[0]]
    return model._has_baseline, config.defaults.get("baseline", "given")


THEOREM = {"noise": 0.1, "theta_norm": 1.0, "arm_norm": 1.0, "delta": 0.01}


@pytest.mark.parametrize("actions", [None, NAMES])
def test_it_is_on_wherever_it_can_be(actions: list[str] | None) -> None:
    """For every policy, by arms and by actions, unless the client says otherwise or a theorem stands on 0."""
    for policy in ("adaptive", "dbslinucb", "oful", "soful", "cbscfd", "cbrap"):
        assert built(policy=policy, actions=actions) == (True, True)
        assert built(policy=policy, actions=actions, parameters={"baseline": False}) == (False, "given")
        assert built(policy=policy, actions=actions, parameters={"baseline": True}) == (True, "given")
        if policy != "cbrap":  # no theorem covers it
            assert built(policy=policy, actions=actions, parameters={"beta": THEOREM}) == (False, False)
    assert built(rewards="poisson", actions=actions) == (True, True)
    with pytest.raises(Invalid, match="a theorem for rewards as they are"):
        built(parameters={"baseline": True, "beta": THEOREM}, actions=actions)


def test_a_recipe_of_a_user_has_one_too(monkeypatch: pytest.MonkeyPatch) -> None:
    """Which need not know the setting. Its bandits of 0.14 have none, whatever the recipe does today."""
    for name, make in {
        "mine": lambda dim: sb.LinUCB(sb.ExactSketch(dim)),
        "like-ours": sb.adaptive,
        "without": lambda dim: sb.oful(dim, baseline=False),
    }.items():
        monkeypatch.setitem(RECIPES, name, Recipe(make, lambda _: "mine", can_turn_exact=True))
        for actions in (None, NAMES):
            assert built(policy=name, actions=actions) == ((name != "without"),) * 2
            old = BanditConfig.from_json(json.dumps({"dim": DIM, "policy": name, "actions": actions}))
            policy = old.build()
            assert not (policy if actions is None else policy["a"])._has_baseline


@in_loop
async def test_it_is_a_setting_like_others(tmp_path: Path) -> None:
    """Shown, compared, and refused unless it is true or false."""
    async with service(tmp_path) as found:
        assert (await found.create()).json()["defaults"]["baseline"] is True
        off = {"parameters": {"baseline": False}}
        assert (await found.create("off", **off)).json()["parameters"] == {"baseline": False}
        assert (await found.create("off", **off)).status_code == 200
        status, message = error_of(await found.http.put("/v1/bandits/off", json={"dim": DIM}))
        assert (status, "parameters is {'baseline': False}, not {}" in message) == (409, True)
        for odd in (None, 0, 1.0, "auto", [True]):
            body = {"dim": DIM, "parameters": {"baseline": odd}}
            status, message = error_of(await found.http.put("/v1/bandits/new", json=body))
            assert (status, "baseline must be true" in message) == (422, True)
        description = (await found.http.get("/openapi.json")).text
        assert "baseline: whether rewards are learned less their mean" in description
