"""The log of a service is evaluated: from its export, and beside a server that goes on writing."""

import json
import re
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

import sketchbandit as sb
from sketchbandit.cli.app import app
from sketchbandit.evaluation import evaluate, read_log
from sketchbandit_service.evaluating import exported
from sketchbandit_service.exporting import export
from tests.service.harness import DIM, PLAIN, in_loop, service


@in_loop
async def test_a_service_is_evaluated_while_it_runs(tmp_path: Path) -> None:
    """What was committed counts; open decisions and other bandits do not; a later reward changes nothing."""
    random = np.random.default_rng(0)
    state = tmp_path / "state"
    async with service(state) as found:
        await found.create(**{**PLAIN, "explore": {"rule": "inverse-gap", "gamma": 2.0}}, log_arms=True)
        await found.create("thin")
        sets, rewards, answers = [], [], []
        for _ in range(60):
            arms = random.standard_normal((3, DIM))
            answer = (await found.decide(arms.tolist())).json()
            rewards.append(float(arms[answer["index"], 0] > 0.0))
            await found.reward(answer["decision"], rewards[-1])
            sets.append(arms)
            answers.append(answer)
        still_open = (await found.decide(sets[0].tolist())).json()
        await found.decide(name="thin")
        with exported(state, bandit="b") as (path, log):
            await found.reward(still_open["decision"], 1.0)
            assert path.is_file()
            assert len(log) == 60
            assert log.left_out == {"the reward is not known yet": 1}
            policy = sb.oful(DIM, explore=sb.Greedy())
            weights = [
                policy.probabilities(arms)[one["index"]] / one["propensity"]
                for arms, one in zip(sets, answers, strict=True)
            ]
            value = evaluate(log, {"greedy": policy}, ("ips",))[0].value
            assert value == pytest.approx(np.mean(np.array(weights) * rewards))
        assert not path.exists()
        with (
            pytest.raises(sb.InputError, match="give the name of a bandit; there are: b, thin"),
            exported(state),
        ):
            pass
        with pytest.raises(sb.InputError, match="no bandit 'absent'"), exported(state, bandit="absent"):
            pass
        with pytest.raises(sb.InputError, match="log_arms"), exported(state, bandit="thin"):
            pass
        asked = [
            "service",
            "evaluate",
            state,
            "--bandit",
            "b",
            "--policy",
            "oful",
            "--methods",
            "snips",
            "--json",
        ]
        done = CliRunner().invoke(app, [*map(str, asked), "--out", str(tmp_path / "out")])
        assert done.exit_code == 0, done.output
        told = json.loads(done.stdout)
        assert told["logged"]["effective_size"] == 31  # the later half of 61
        assert told["interval"] == "bounded"
        await found.create("rare", **{**PLAIN, "exploration": 0.5}, log_arms=True)
        for number in range(40):
            answer = (await found.decide(sets[number].tolist(), name="rare")).json()
            await found.reward(answer["decision"], float(number == 30), "rare")
        asked[asked.index("b")] = "rare"
        done = CliRunner().invoke(app, [*map(str, asked), "--out", str(tmp_path / "rare")])
        assert done.exit_code == 0, done.output
        told = json.loads(done.stdout)
        assert [row["low"] for row in told["estimates"]] == [None]
        assert re.search(
            "decide nothing|all rewards that count for it are 0", told["weights"]["oful"]["verdict"]
        )
    export(state, tmp_path / "log.parquet")
    with pytest.raises(sb.InputError, match="several bandits"):
        read_log(tmp_path / "log.parquet")
    assert len(read_log(tmp_path / "log.parquet", bandit="b")) == 61


@in_loop
async def test_actions_of_a_service(tmp_path: Path) -> None:
    """Contexts and the names offered, which differ from decision to decision."""
    names = ["red", "green", "blue"]
    async with service(tmp_path / "state") as found:
        await found.create(actions=names, log_arms=True, explore={"rule": "inverse-gap", "gamma": 1.0})
        for number in range(20):
            body = {"context": [1.0, 0.5, 0.0, float(number)], "actions": names[: 2 + number % 2]}
            answer = (await found.http.post("/v1/bandits/b/decide", json=body)).json()
            await found.reward(answer["decision"], float(answer["action"] == "green"))
    with exported(tmp_path / "state") as (_, log):
        assert (log.actions, log.context_dim, len(log)) == (tuple(names), 4, 20)
        models = sb.PerAction(names, lambda: sb.oful(4, explore=sb.Greedy()))
        found_ = evaluate(log, {"models": models, "uniform": "uniform"}, ("ips", "dr"))
        chosen = np.array(
            [[n[c] for n, c in zip(k.offered or [], k.chosen, strict=True)] for k in log.chunks()]
        )
        assert np.array_equal(chosen.ravel() == "green", log.reward == 1.0)
        assert np.isfinite([row.value for row in found_]).all()
