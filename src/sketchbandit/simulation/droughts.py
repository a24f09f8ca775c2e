"""How long a policy earns nothing: before its first reward, and at the longest."""

from sketchbandit.environment import Environment
from sketchbandit.policy import Policy

DROUGHT = 500
"""Rounds without any reward that count as starving."""


def measure(policy: Policy, environment: Environment, rounds: int) -> dict[str, float]:
    """Play, and count the rounds before the first reward, and the longest stretch of rounds without any."""
    first = longest = lasting = 0
    reward = regret = 0.0
    for number, drawn in enumerate(environment.rounds(rounds), start=1):
        chosen = policy.select(drawn.arms)
        earned = drawn.reward(chosen)
        policy.update(drawn.arm(chosen), earned)
        reward, regret = reward + earned, regret + drawn.regret(chosen)
        lasting = 0 if earned else lasting + 1
        first, longest = number if lasting == number else first, max(longest, lasting)
    return {"reward": reward, "regret": regret, "dry_at_first": first, "dry_at_most": longest}
