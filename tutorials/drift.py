# %% [markdown]
# # Drift
#
# *You learn how a policy notices that the world has changed, and two ways to follow it: to forget, and to
# start again. About 7 minutes. Needs `pip install '.[experiments]'` (for matplotlib, and fast loops).*
#
# A policy believes what it has learned. When tastes change, all that experience is wrong, and the more it
# has, the longer it holds on to it. We play in two worlds. In the first everything changes at once, after
# half of the rounds. In the second it changes slowly, all the time.

# %%
import textwrap
import warnings

import matplotlib.pyplot as plt
import numpy as np

import sketchbandit as sb

rounds = 6_000  # short: 600
repeats = 5  # short: 1


def sudden(seed, noise=0.1):
    first, then = (sb.GaussianArms(dim=20, arms=10, noise=noise, seed=number) for number in (seed, seed + 50))
    return sb.Switching(first, then, at=rounds // 2)


def slow(seed, noise=0.1):
    return sb.Rotating(sb.GaussianArms(dim=20, arms=10, noise=noise, seed=seed), turn=2 * rounds)


# %% [markdown]
# ## It notices by itself
#
# A policy compares its predictions with the rewards. If they become worse than they were, by more than
# noise can explain, it warns once. From then on `health()` says so.

# %%
policy = sb.adaptive(20, scaling=None, seed=0)  # these arms have length one already
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    for drawn in sudden(0).rounds(rounds):
        chosen = policy.select(drawn.arms)
        policy.update(drawn.arms[chosen], drawn.reward(chosen))

print("the world changed after", rounds // 2, "rounds; noticed after", policy.health().changed_at)
for warning in caught:
    print(textwrap.fill(f"{warning.category.__name__}: {warning.message}", width=100))

# %% [markdown]
# ## Two ways to follow
#
# - **Forget all the time**: `forget=150` is a half-life. A round counts half after 150 further rounds. This
#   needs no alarm, and it also follows slow changes. The price: the policy never knows more than its
#   memory can hold.
# - **Start again after the alarm**: `policy.reset()` forgets everything that was learned from rewards.
#   Settings, the scaling of features and the names of columns stay. It costs nothing as long as nothing
#   changes.


# %%
def play(world, seed, forget=None, starts_again=False):
    """The regret after every round, and the rounds after which an alarm was given."""
    policy = sb.adaptive(20, scaling=None, forget=forget, seed=seed)
    lost, alarms = [], []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", sb.WorldChangedWarning)  # we look at health() instead
        for number, drawn in enumerate(world.rounds(rounds), 1):
            chosen = policy.select(drawn.arms)
            policy.update(drawn.arms[chosen], drawn.reward(chosen))
            lost.append(drawn.means.max() - drawn.means[chosen])
            if starts_again and policy.health().world_changed:
                alarms.append(number)
                policy.reset()
    return np.cumsum(lost), alarms


ways = {
    "never forgets": {},
    "forgets, half-life 150": {"forget": 150},
    "starts again after the alarm": {"starts_again": True},
}
worlds = {"a sudden change": sudden, "a slow change": slow}
played = {
    (where, how): [play(world(seed), seed, **settings) for seed in range(repeats)]
    for where, world in worlds.items()
    for how, settings in ways.items()
}
print(f"{'regret, first and second half:':31}", *(f"{where:>18}" for where in worlds))
for how in ways:
    print(f"  {how:29}", end="")
    for where in worlds:
        curve = np.mean([curve for curve, _ in played[where, how]], axis=0)
        print(f"{curve[rounds // 2 - 1]:10.0f} {curve[-1] - curve[rounds // 2 - 1]:8.0f}", end="")
    print()

# %% [markdown]
# After a **sudden change** both ways recover, and lose less than a tenth of what the stubborn policy loses.
# Before it, forgetting cost a little: the first half is where nothing changed.
#
# A **slow change** is another matter. The alarm comes late, because the errors grow in small steps.
# Forgetting is far better there.

# %%
for where in worlds:
    alarms = [alarms for _, alarms in played[where, "starts again after the alarm"]]
    print(f"{where}: first alarm after {[given[0] if given else None for given in alarms]} rounds")

# %% [markdown]
# ## How long a memory?
#
# Take a memory that is shorter than the time for which the world stays the same, and longer than learning
# takes. Here are four, in the world that changes at once:

# %%
for half_life in (20, 150, 500, 1500):
    curves = np.array([play(sudden(seed), seed, forget=half_life)[0] for seed in range(repeats)])
    before, after = curves[:, rounds // 2 - 1].mean(), curves[:, -1].mean()
    print(f"half-life {half_life:4}: regret {before:4.0f} before the change, {after - before:4.0f} after it")

# %% [markdown]
# ## Do not rely on the alarm alone
#
# The test behind it is careful: while nothing changes, [false alarms are
# rare](../bandits.md#how-a-change-is-noticed). So it misses changes that hide in the noise. With three times
# the noise:

# %%
noisy = [play(sudden(seed, noise=0.3), seed, starts_again=True)[1] for seed in range(repeats)]
print(f"noticed in {sum(bool(alarms) for alarms in noisy)} of {repeats} runs")

# %%
figure, panels = plt.subplots(1, 2, figsize=(8.0, 3.8), layout="constrained", sharey=True)
for axes, where in zip(panels, worlds, strict=True):
    for how in ways:
        curves = np.array([curve for curve, _ in played[where, how]])
        axes.plot(np.arange(1, rounds + 1), curves.mean(axis=0), lw=2, label=how)
    axes.set_xlabel("rounds")
panels[0].set_ylim(0, None)
panels[0].axvline(rounds // 2, color="0.7", lw=1)
panels[0].text(rounds // 2, 30, "the change ", color="0.35", fontsize=8, ha="right")
panels[0].set_ylabel("regret")
panels[0].set_title("A sudden change: forget, or start again")
panels[1].set_title("A slow change: forget")
panels[1].legend(loc="upper left")
plt.show()

# %% [markdown]
# Lines are means of five runs.
#
# **Take away:** if you know that the world changes, use `forget=` with a half-life of about the time for
# which your data stay true. If you hope that it does not, watch `health().world_changed`, and call
# `policy.reset()` when it says so.
#
# **Next:** [Bandits](../bandits.md#when-the-world-changes) has the details of forgetting, and
# [Clicks, outliers, drift measured](../beyond-results.md#drift) more figures.
