# %% [markdown]
# # Writing a reward model
#
# *You learn to write a reward model of your own, to check it against numpy, to save it, and to see what it
# earns. Reading time: 12 minutes. Extras: `experiments` (for the picture).*
#
# A policy joins three parts: a sketch, a rule that explores, and a **reward model** (an `sb.Estimate`), which
# learns what rewards to expect. The library has models for plain rewards, clicks, counts and outliers.
#
# Ours is for rewards that are **not equally noisy**. A shop earns money on each visitor. For a cheap product
# the result is nearly certain, for an expensive one it is a gamble. Ordinary regression believes every reward
# alike, so the gambles drown the rest. If you know how the noise grows, weigh each reward by 1/variance:
# weighted least squares.
#
# ## The class
#
# With `weighs = True` an arm x goes into the sketch as √weight·x, so the matrix of the policy becomes A =
# ridge·I + Σ weight·x x'. After that `learn` is called. One step of weighted least squares is
#
#     theta  ←  theta + weight · (reward - x'theta) · A⁻¹x
#
# and `self.gain(x, step)` is A⁻¹x, with x in A already.

# %%
import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

import sketchbandit as sb


class Weighted(sb.Estimate):
    """The mean reward is x'theta; the deviation of its noise is base + slope·|x[column]|."""

    kind = "tutorial-weighted"  # the name that files use
    weighs = True  # arms go into the sketch by their weight
    is_normalised = True  # weights are 1/variance, so a radius of one is a standard deviation

    def __init__(self, *, column=0, base=0.1, slope=1.0):
        if not base > 0.0:
            raise sb.InputError(f"base must be above 0, got {base}")
        self.column, self.base, self.slope = column, base, slope
        self.most_weight = 1.0 / base**2  # no weight is larger

    def bind(self, precision):  # a policy starts with it: nothing is learned yet
        super().bind(precision)
        self._theta = np.zeros(precision.sketch.dim)

    theta = property(lambda self: self._theta)
    nbytes = property(lambda self: self._theta.nbytes)

    def weight(self, x, norm_sq, reward, leverage):
        del norm_sq, reward, leverage  # there for models whose weights depend on them
        return 1.0 / (self.base + self.slope * abs(x[self.column])) ** 2

    def learn(self, x, reward, step):
        error = reward - x @ self._theta
        self._theta = self._theta + self.weight(x, None, reward, None) * error * self.gain(x, step)

    # -- files: settings, and what was learned

    def settings(self):
        return {"column": self.column, "base": self.base, "slope": self.slope}

    def dump(self):  # numbers, arrays
        return self.settings(), {"theta": self._theta}

    @classmethod
    def made_for(cls, scalars):  # the same settings, from what `dump` told
        return cls(**scalars)

    def restore(self, scalars, arrays):
        del scalars  # they are settings, which `made_for` has read
        self._theta = arrays["theta"]


# %% [markdown]
# `x` is the arm as the policy reads it: with `scaling=` it is the scaled one. Here arms are dense and read as
# they are.
#
# ## Is it right?
#
# A reward model is easy to get subtly wrong. So we compare it with the textbook's formula, on the arms and
# rewards that the policy has really seen.

# %%
features, products = 20, 10


def shop(seed, rounds):
    """Ten products a visitor: features (the first is the price), mean rewards, and noise."""
    random = np.random.default_rng(seed)
    taste = random.standard_normal(features) / np.sqrt(features)
    for _ in range(rounds):
        arms = random.standard_normal((products, features))
        arms[:, 0] = random.exponential(size=products)
        yield arms, arms @ taste, (0.1 + arms[:, 0]) * random.standard_normal()


policy = sb.oful(features, rewards=Weighted(), explore=sb.Thompson("auto", seed=0))
seen, rewards = [], []
for arms, means, noise in shop(seed=0, rounds=300):
    chosen = policy.select(arms)
    seen.append(arms[chosen])
    rewards.append(means[chosen] + noise[chosen])
    policy.update(seen[-1], rewards[-1])

X, r = np.array(seen), np.array(rewards)
w = 1 / (0.1 + X[:, 0]) ** 2
textbook = np.linalg.solve(np.eye(features) + X.T @ (w[:, None] * X), X.T @ (w * r))
print("equal to the textbook:", np.allclose(policy.theta, textbook, rtol=0, atol=1e-12))

# %% [markdown]
# The step is exact as long as the sketch is: `sb.oful` keeps all. On a sketch that loses something it is
# approximate, as for all models that learn step by step.
#
# ## Save and load
#
# Because of `kind`, `dump`, `made_for` and `restore` a policy with this model can be saved. The program that
# loads the file must have imported the class.

# %%
with tempfile.TemporaryDirectory() as folder:
    path = Path(folder) / "policy.safetensors"
    policy.save(path)
    again = sb.load(path, sb.LinUCB)
print("the same theta:", np.array_equal(again.theta, policy.theta))
print("settings:", again.estimate.settings())

# %% [markdown]
# ## What does it earn?
#
# Five models, the same rule for all, the same ten shops. `sb.Linear` is the default of the library, and
# `sb.Robust` is made for outliers. Two of ours believe that the noise grows three times as fast as it does,
# or a third as fast: in practice you only know it roughly.

# %%
rounds = 2_000  # short: 200
shops = 10  # short: 2
models = {
    "Linear": sb.Linear,
    "Robust": sb.Robust,
    "ours": Weighted,
    "ours, slope guessed 3": lambda: Weighted(slope=3.0),
    "ours, slope guessed 1/3": lambda: Weighted(slope=1 / 3),
}
regret = {}
for name, model in models.items():
    runs = []
    for seed in range(1, shops + 1):
        policy = sb.oful(features, rewards=model(), explore=sb.Thompson("auto", seed=seed))
        lost = []
        for arms, means, noise in shop(seed, rounds):
            chosen = policy.select(arms)
            policy.update(arms[chosen], means[chosen] + noise[chosen])
            lost.append(means.max() - means[chosen])
        runs.append(np.cumsum(lost))
    regret[name] = np.array(runs)
    last = regret[name][:, -1]
    print(f"{name:23} regret {last.mean():4.0f} in the mean, {last.max():4.0f} at worst")

# %%
figure, axes = plt.subplots(figsize=(8, 4))
for name, runs in regret.items():
    axes.plot(np.arange(1, rounds + 1), runs.mean(axis=0), label=name)
axes.set(xlabel="round", ylabel="regret (mean of all shops)")
axes.set_title("Knowing which rewards are noisy, even roughly, is worth a lot")
axes.legend()
plt.show()

# %% [markdown]
# What else a model may have:
#
# - `check_reward(reward)` refuses rewards that make no sense, before anything changes.
# - `has_link = True` and `expected(margins)`: the mean reward is a growing function of x'theta, such as a
#   click rate.
# - `add(other)` lets two policies merge; `forget(factor)` is for `forget=`. Without them the policy says that
#   it cannot.
#
# **Next:** [Extending](../extending.md#a-reward-model) has the full contract and a model of clicks. [Beyond
# linear rewards](../beyond-linear.md) has the models of the library.
