# %% [markdown]
# # Writing an exploration rule
#
# *You learn to write an exploration rule of your own, with exact probabilities, to save it with its policy,
# and to compare it with UCB and Thompson sampling. Reading time: 10 minutes. Extras: `experiments` (for the
# picture).*
#
# A policy joins three parts: a sketch, a model of the rewards, and a rule that chooses. The rule sees the
# estimated mean reward of every arm, and can ask for more, such as widths. It answers with an arm.
#
# Ours is **softmax** (Boltzmann exploration): arm a is chosen with probability proportional to exp(mean of a
# / temperature). A high temperature is nearly uniform, a low one nearly greedy.
#
# ## The class
#
# A rule is a subclass of `sb.Explore` with two methods.

# %%
import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

import sketchbandit as sb


class Softmax(sb.Explore):
    """Arm a with probability proportional to exp(mean / temperature)."""

    kind = "tutorial-softmax"  # the name that files use
    by_rewards = True  # it looks at differences of mean rewards, not only at their order

    def __init__(self, temperature=0.1, *, cooling=0.0, floor=0.0, seed=None):
        super().__init__(floor=floor, seed=seed)
        if not temperature > 0.0:
            raise sb.InputError(f"temperature must be above 0, got {temperature}")
        self.temperature, self.cooling = temperature, cooling

    def probabilities(self, candidates):
        temperature = self.temperature / (1 + candidates.rounds) ** self.cooling
        rewards = candidates.rewards  # the mean reward of every arm
        weights = np.exp((rewards - rewards.max()) / temperature)  # at most 1: nothing overflows
        return weights / weights.sum()

    def choose(self, candidates, count, random):
        del count  # a rule that draws is asked for one arm at a time
        return [int(random.choice(len(candidates), p=self.probabilities(candidates)))]


# %% [markdown]
# Three things to know:
#
# - A rule has settings and no state. Arguments of the constructor that are attributes of the same name are
#   saved by themselves.
# - The policy owns the random generator. It hands it to `choose`, saves it, and seeds it with the `seed` of
#   the rule. So a saved policy goes on with the same draws.
# - The policy also draws the uniform share `floor`. Your methods need not know about it.
#
# `cooling` makes the temperature fall with the number of rewards learned. We come to that below.
#
# ## Are the probabilities right?
#
# We teach a policy something about four arms, and compare `probabilities` with what it really chooses.

# %%
policy = sb.oful(4, explore=Softmax(0.3, floor=0.1, seed=0))
arms = np.eye(4)
policy.update(arms, [0.2, 0.4, 1.0, 0.8])

told = policy.probabilities(arms)
chosen = [policy.select(arms) for _ in range(20_000)]
print("means    ", policy.mean(arms).round(2))
print("told     ", told.round(3))
print("observed ", (np.bincount(chosen, minlength=4) / len(chosen)).round(3))
choice = policy.choose(arms)
print(f"choose: arm {choice.index}, probability {choice.probability:.3f}")

# %% [markdown]
# Both agree, the uniform share included. So the probability that `choose` returns can go into a log, and [the
# log can judge other policies](from-the-log.md).
#
# ## Save and load
#
# Because the class has a `kind`, a policy with this rule can be saved. Nothing has to be registered. The
# program that loads the file must have imported the class, because files hold data and never code.

# %%
with tempfile.TemporaryDirectory() as folder:
    path = Path(folder) / "policy.safetensors"
    policy.save(path)
    again = sb.load(path, sb.LinUCB)
print(again.explore)
choices = [[one.select(arms) for _ in range(50)] for one in (policy, again)]
print("the same next choices:", choices[0] == choices[1])

# %% [markdown]
# ## Beside UCB and Thompson sampling
#
# The same 20 arms are offered in every round, with noise. That is where exploration matters most: a rule that
# settles for a wrong arm too early never learns better. Each rule plays the same 20 worlds. UCB and Thompson
# sampling have their default strength.

# %%
rounds = 3_000  # short: 200
worlds = 20  # short: 3
rules = {
    "UCB": lambda seed: sb.UCB(seed=seed),
    "Thompson": lambda seed: sb.Thompson(seed=seed),
    "softmax 0.1": lambda seed: Softmax(0.1, seed=seed),
    "softmax 0.01": lambda seed: Softmax(0.01, seed=seed),
    "softmax 0.3, cooling": lambda seed: Softmax(0.3, cooling=0.5, seed=seed),
    "softmax 1, cooling": lambda seed: Softmax(1.0, cooling=0.5, seed=seed),
}
regret = {}
for name, rule in rules.items():
    runs = []
    for seed in range(100, 100 + worlds):
        world = sb.GaussianArms(dim=20, arms=20, noise=0.5, fixed=True, seed=seed)
        played = sb.play(sb.oful(20, explore=rule(seed)), world, rounds, every=20)
        runs.append([result.total_regret for result in played])
    regret[name] = np.array(runs)
    last = regret[name][:, -1]
    print(f"{name:21} regret {last.mean():4.0f} in the mean, {last.max():4.0f} at worst")

# %% [markdown]
# A constant temperature is a bad bargain. If it is high, the rule never stops paying for exploration. If it
# is low, it is nearly greedy and gets stuck. With `cooling=0.5` the temperature falls like 1/√rounds: much
# exploration first, little later. Such a schedule needs nothing but `candidates.rounds`.

# %%
figure, axes = plt.subplots(figsize=(8, 4))
for name, runs in regret.items():
    steps = np.arange(1, runs.shape[1] + 1) * 20
    axes.plot(steps, runs.mean(axis=0), label=name)
axes.set(xlabel="round", ylabel="regret (mean of all worlds)")
axes.set_title("Softmax is only good when it cools down")
axes.legend()
plt.show()

# %% [markdown]
# Do not take this for a law. Rewards of another size need another temperature. And tuning is treacherous: we
# first tried eight other worlds of the same kind, where 0.3 lost 12 and 1 lost 60. On the twenty worlds above
# it is the other way round, because 0.3 gets stuck in a few of them. Tune on many worlds, and look at the
# worst run.
#
# Softmax ignores how unsure a mean is. The widths are there to be asked: `candidates.widths()`.
#
# **Next:** [Extending](../extending.md#a-way-to-explore) lists all that a rule can ask for.
# [Exploration](../exploration.md) says which of our rules to use when. [Writing a reward
# model](new-reward-model.md) replaces the third part.
