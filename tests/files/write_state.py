"""Writes a state folder of the service as one version leaves it, and what its policies say.

Run it as ``write.py``, with the sources of a release, once, and commit what it writes:

    PYTHONPATH=<clone of that release>/src:. python -m tests.files.write_state tests/files/<version>/state

The service is killed half a life after its last snapshots, so that a start needs them and the journal.
"""

import asyncio
import json
import sqlite3
import sys
from pathlib import Path
from typing import Any

from tests.files.write import numbers, reward_of
from tests.service.harness import Service, crashing

DIM = 12
KINDS: dict[str, dict[str, Any]] = {
    "arms": {"propensities": "none"},
    "actions": {"propensities": "none", "actions": ["a", "b"]},
    "forgets": {"explore": {"rule": "ucb", "beta": 0.3}, "actions": ["a", "b"], "forget": 10},
}


async def rounds(found: Service, first: int, last: int) -> None:
    """Some decisions of every bandit, each with a reward far from 0."""
    for number in range(first, last):
        arms = numbers(3, number)
        for name, kind in KINDS.items():
            asked: dict[str, Any] = {"arms": arms.tolist()}
            if "actions" in kind:  # each gets some
                asked = {"context": arms[0].tolist(), "actions": ["a" if number % 3 else "b"]}
            decided = (await found.http.post(f"/v1/bandits/{name}/decide", json=asked)).json()
            arm = arms[0 if "actions" in kind else decided["index"]]
            answer = await found.reward(decided["decision"], 5.0 + number % 3 + reward_of(arm), name)
            assert answer.status_code == 200, answer.text


async def live(found: Service) -> None:
    """Two stretches, and a snapshot between them; a candidate, and an action that came later."""
    for name, kind in KINDS.items():
        answer = await found.http.put(f"/v1/bandits/{name}", json={"dim": DIM, **kind})
        assert answer.status_code == 201, answer.text
    beside = {"policy": "soful", "parameters": {"size": 20}}
    await found.http.put("/v1/bandits/arms/candidates/beside", json=beside)
    await rounds(found, 0, 20)
    await found.http.post("/v1/bandits/actions/actions", json={"actions": ["c"]})
    for bandit in found.engine.registry.bandits.values():
        await found.upkeep.snapshot(bandit)
    await rounds(found, 20, 40)


def answers(found: Service) -> dict[str, Any]:
    """What the policies of a service say, by bandit and candidate."""
    told, arms = {}, numbers(3, 999)
    for name, bandit in found.engine.registry.bandits.items():
        for which, policy in [("", bandit.policy), *((one.name, one.policy) for one in bandit.shadows)]:
            models = getattr(policy, "policies", {"": policy})
            told[f"{name}/{which}"] = {
                "rounds": [model.rounds for model in models.values()],
                "theta": [model.theta.tolist() for model in models.values()],
                "ucb": policy.ucb(arms if models == {"": policy} else arms[0]).tolist(),
            }
    return told


def write(state: Path) -> None:
    """The folder, and ``answers.json`` in it."""
    found = asyncio.run(crashing(state, live))
    with sqlite3.connect(state / "journal.sqlite") as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    connection.execute("VACUUM")
    connection.close()
    text = json.dumps(answers(found), indent=0)
    (state / "answers.json").write_text(f"{text}\n", encoding="utf-8")


if __name__ == "__main__":
    write(Path(sys.argv[1]))
