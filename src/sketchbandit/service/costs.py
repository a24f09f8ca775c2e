"""How long work may take, told beforehand from settings and counts: a busy policy is never asked."""

from typing import Any

_FLOPS = 1e9  # a second


def learn_seconds(config: Any) -> float:
    """Of a reward."""
    return config.dim * min(config.dim, 256) / _FLOPS


def copy_seconds(config: Any) -> float:
    """Of a copy of a policy."""
    return config.dim * min(config.dim, 256) / _FLOPS


def decide_seconds(config: Any, arms: int) -> float:
    """Of a decision."""
    return arms * config.dim * min(config.dim, 64) / _FLOPS
