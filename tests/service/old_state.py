"""State folders of earlier versions: format 1 of the journal, before slates and rules; format 2, of 0.9."""

import json
import sqlite3
from pathlib import Path

import numpy as np

import sketchbandit as sb
from sketchbandit.estimate import RewardScale
from sketchbandit_service.storage.snapshots import Snapshot, SnapshotFolder
from sketchbandit_service.vectors import encode

DIM = 3
OPEN = "b-00000000000b"
"""A decision with a ranking that waits for its reward; its idempotency key is "k"."""
_SCHEMA = """
CREATE TABLE sketchbandit_service (
    id INTEGER NOT NULL PRIMARY KEY, format INTEGER NOT NULL, instance VARCHAR(32) NOT NULL,
    batch BIGINT NOT NULL, seq BIGINT NOT NULL, dropped BIGINT NOT NULL);
CREATE TABLE sketchbandit_bandits (
    id INTEGER NOT NULL PRIMARY KEY, name VARCHAR(128) UNIQUE, config TEXT NOT NULL, created DOUBLE NOT NULL);
CREATE TABLE sketchbandit_arms (
    bandit INTEGER NOT NULL, arm VARCHAR(128) NOT NULL, place INTEGER NOT NULL, features BLOB NOT NULL,
    PRIMARY KEY (bandit, arm));
CREATE TABLE sketchbandit_decisions (
    seq INTEGER NOT NULL PRIMARY KEY, bandit BIGINT NOT NULL, tag VARCHAR(16) NOT NULL, at DOUBLE NOT NULL,
    arm_index INTEGER NOT NULL, arm_id VARCHAR(128), arm_count INTEGER NOT NULL, features BLOB NOT NULL,
    score DOUBLE NOT NULL, mean DOUBLE NOT NULL, propensity DOUBLE NOT NULL, rounds BIGINT NOT NULL,
    "key" VARCHAR(128), request VARCHAR(32), top TEXT, arms BLOB);
CREATE TABLE sketchbandit_rewards (
    seq INTEGER NOT NULL PRIMARY KEY, decision BIGINT NOT NULL UNIQUE, bandit BIGINT NOT NULL,
    kind VARCHAR(8) NOT NULL, reward DOUBLE, at DOUBLE NOT NULL);
INSERT INTO sketchbandit_service VALUES (1, 1, '0123456789abcdef0123456789abcdef', 11, 11, 0);
INSERT INTO sketchbandit_bandits VALUES (1, 'b', '{"default_reward": 0.0, "dim": 3, "exploration": 0.25,
    "log_arms": false, "max_open": 100000, "parameters": {"beta": 0.5}, "policy": "adaptive",
    "reward_timeout": null}', 1700000000.0);
"""
_INSERT = "INSERT INTO sketchbandit_decisions VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
_TOP = '[{"index": 1, "arm": null, "score": 0.5}, {"index": 0, "arm": null, "score": 0.4}]'


def write(state: Path) -> sb.LinUCB:
    """Write the folder, with a bandit ``b`` of five decisions, four of them rewarded; what it has learned."""
    state.mkdir()
    rule = sb.UCB(0.5, floor=0.25)
    alone = sb.adaptive(DIM, explore=rule, ridge=1.0, scaling=None, intercept=False, baseline=False)
    connection = sqlite3.connect(state / "journal.sqlite")
    connection.execute("PRAGMA journal_mode=WAL")
    with connection:
        connection.executescript(_SCHEMA)
        for place in range(5):
            seq, at, x = 2 * place + 2 + (place == 4), 1.7e9 + place, np.eye(DIM)[place % DIM] + 0.1 * place
            decision = (seq, 1, f"{seq:012x}", at, place % DIM, None, DIM, encode(x), 0.5, 0.2, 0.75, place)
            further = ("k", "digest", _TOP, None) if place == 4 else (None, None, None, None)
            connection.execute(_INSERT, (*decision, *further))
            if place < 4:
                reward = (seq + 1, seq, 1, "given", float(place), at + 0.5)
                connection.execute("INSERT INTO sketchbandit_rewards VALUES (?, ?, ?, ?, ?, ?)", reward)
                alone.update(x, float(place))
    connection.close()
    return alone


def as_format_4(state: Path) -> None:
    """Make a folder of today one of 0.12: no candidates, no bandits that began with a log."""
    connection = sqlite3.connect(state / "journal.sqlite")
    with connection:
        for table in ("candidates", "chances"):
            connection.execute(f"DROP TABLE sketchbandit_{table}")
        connection.execute("ALTER TABLE sketchbandit_bandits DROP COLUMN source")
        connection.execute("UPDATE sketchbandit_service SET format = 4")
    connection.close()


def as_format_3(state: Path) -> None:
    """Make a folder of today one of 0.10: no checksums, snapshots without what waits."""
    as_format_4(state)
    connection = sqlite3.connect(state / "journal.sqlite")
    with connection:
        for table in ("arms", "decisions", "rewards", "estimates", "actions", "scalings"):
            connection.execute(f"ALTER TABLE sketchbandit_{table} DROP COLUMN crc")
        for table, column in (
            ("decisions", "crc_logged"),
            ("bandits", "arms_version"),
        ):
            connection.execute(f"ALTER TABLE sketchbandit_{table} DROP COLUMN {column}")
        connection.execute("DROP TABLE sketchbandit_snapshots")
        connection.execute("UPDATE sketchbandit_service SET format = 3")
    connection.close()
    folder = SnapshotFolder(state)
    for bandit, seq in taken(state):
        folder.write(bandit, as_before_open_lists(folder.read(bandit, seq)))


def as_format_2(state: Path) -> None:
    """Make a folder of today one of 0.9, where nothing of what 0.9 did not have was used.

    Its bandits were created with no word of a scaling, an intercept or a rule.
    """
    as_format_3(state)
    connection = sqlite3.connect(state / "journal.sqlite")
    with connection:
        assert connection.execute("SELECT count(*) FROM sketchbandit_scalings").fetchone() == (0,)
        connection.execute("DROP TABLE sketchbandit_scalings")
        connection.execute("UPDATE sketchbandit_service SET format = 2")
        for number, text in connection.execute("SELECT id, config FROM sketchbandit_bandits").fetchall():
            config = {**json.loads(text), "explore": None, "parameters": {}}
            del config["defaults"]
            row = (json.dumps(config, sort_keys=True), number)
            connection.execute("UPDATE sketchbandit_bandits SET config = ? WHERE id = ?", row)
    connection.close()
    folder = SnapshotFolder(state)
    for bandit, seq in taken(state):
        snapshot = folder.read(bandit, seq)
        if isinstance(snapshot.policy, sb.LinUCB):
            snapshot.policy._posterior.estimate.reward_scale = RewardScale()
            folder.write(bandit, snapshot)


def taken(state: Path) -> list[tuple[int, int]]:
    """The snapshots of a folder: of which bandit, at which record."""
    return [
        (int(path.parent.name), int(path.stem)) for path in sorted(state.glob("snapshots/*/*.safetensors"))
    ]


def as_before_open_lists(snapshot: Snapshot) -> Snapshot:
    """As versions before 0.11 wrote it: with the oldest row that waits alone."""
    state = {name: value for name, value in snapshot.state.items() if name != "open"}
    return snapshot._replace(
        state={**state, "oldest_open": min([*snapshot.state["open"].tolist(), snapshot.seq + 1])}
    )
