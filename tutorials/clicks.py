# %% [markdown]
# # Clicks
#
# *You learn how to get probabilities from a bandit with `rewards=sb.Logistic()`, and when that pays.
# About 7 minutes. Needs `pip install '.[experiments]'` (for matplotlib, and fast loops).*
#
# A click is 0 or 1. A linear policy treats it as a number like any other: it may predict -0.1 clicks. A
# logistic policy predicts a probability. Which of the two should you use?
#
# In our world each round offers ten advertisements with 20 features. The typical one is clicked by 5 % of
# those who see it; the log-odds of a click are linear in the features.

# %%
import matplotlib.pyplot as plt
import numpy as np

import sketchbandit as sb


def world(seed):
    advertisements = sb.GaussianArms(dim=20, arms=10, seed=seed)
    return sb.Clicks(advertisements, base_rate=0.05, lift=4.0, seed=seed)


first = next(world(0).rounds(1))
print("click probabilities of the first ten:", first.means.round(2))

# %% [markdown]
# ## Two policies
#
# They differ in one word. `sb.Linear()` is what you get when you say nothing. We play both on ten worlds and
# count the regret: how many more clicks the best advertisement of every round would have got on average.

# %%
rounds = 4_000  # short: 300
repeats = 10  # short: 2
models = {"Linear": sb.Linear, "Logistic": sb.Logistic}


def play(rewards, seed):
    """The policy after the last round, and its regret after every round."""
    policy = sb.adaptive(20, rewards=rewards, scaling=None, seed=seed)
    lost = []
    for drawn in world(seed).rounds(rounds):
        chosen = policy.select(drawn.arms)
        policy.update(drawn.arms[chosen], drawn.reward(chosen))
        lost.append(drawn.means.max() - drawn.means[chosen])
    return policy, np.cumsum(lost)


played = {name: [play(model(), seed) for seed in range(repeats)] for name, model in models.items()}
for name, runs in played.items():
    regret = np.array([curve[-1] for _, curve in runs])
    print(f"{name:8}  regret {regret.mean():3.0f} on average, {regret.min():.0f} to {regret.max():.0f}")

# %% [markdown]
# Linear does not choose worse: the difference is far within the noise. A choice
# needs only the order of the arms, and a straight line finds nearly the same order. (`scaling=None` because
# these arms have length one already.)
#
# ## What do they predict?
#
# `policy.mean(arms)` is the predicted click rate; `policy.choose(arms).mean` is that of the arm chosen. We
# ask both policies about new advertisements of the same world.

# %%
last = rounds + 200  # rounds that come after those played
fresh = [list(world(seed).rounds(last))[rounds:] for seed in range(repeats)]
truth = np.array([[drawn.means for drawn in drawn_later] for drawn_later in fresh])
predicted = {
    name: np.array(
        [
            [policy.mean(drawn.arms) for drawn in drawn_later]
            for (policy, _), drawn_later in zip(runs, fresh, strict=True)
        ]
    )
    for name, runs in played.items()
}
print("truth:   ", truth[0, 0].round(2))
for name in models:
    print(f"{name + ':':9}", predicted[name][0, 0].round(2))
for name in models:
    off = np.abs(predicted[name] - truth).mean()
    print(f"{name:8}  is off by {off:.3f} on average; {(predicted[name] < 0).mean():.0%} are below 0")

# %% [markdown]
# Linear is right where it has looked most often, at the good advertisements. Elsewhere the line goes below
# zero. Logistic is close everywhere: its curve has the right shape, so it can tell from good
# advertisements what bad ones will do.
#
# ## When the number itself matters
#
# Suppose that showing an advertisement has a cost: postage, or a price in an auction. A click is worth 1.
# You show an advertisement if its predicted rate is above the cost. Now the number decides, not the order.

# %%
print("cost  " + "  ".join(f"{name:>8}" for name in models) + "   (share of the most one could earn)")
for cost in (0.02, 0.05, 0.10):
    most = np.maximum(truth - cost, 0.0).sum()
    shares = [((truth - cost) * (predicted[name] > cost)).sum() / most for name in models]
    print(f"{cost:.2f}  " + "  ".join(f"{share:8.1%}" for share in shares))

# %% [markdown]
# When showing is cheap, Linear misses most: it throws away what it wrongly believes to be worth nothing.

# %%
figure, (left, right) = plt.subplots(1, 2, figsize=(8.0, 3.8), layout="constrained")
for name, runs in played.items():
    curves = np.array([curve for _, curve in runs])
    (line,) = left.plot(np.arange(1, rounds + 1), curves.mean(axis=0), lw=2, label=name)
    left.fill_between(
        np.arange(1, rounds + 1), curves.min(axis=0), curves.max(axis=0), color=line.get_color(), alpha=0.15
    )
    edges = np.quantile(truth, np.linspace(0.0, 1.0, 21))
    group = np.clip(np.searchsorted(edges, truth.ravel()) - 1, 0, 19)
    means = [[values.ravel()[group == g].mean() for g in range(20)] for values in (truth, predicted[name])]
    right.plot(*means, "o-", ms=4, label=name)
right.plot([0.0, 0.3], [0.0, 0.3], color="0.5", lw=1, ls="--", label="a perfect prediction")
right.axhline(0.0, color="0.3", lw=0.8)
left.set(xlabel="rounds", ylabel="regret (clicks lost)", ylim=(0, None))
right.set(xlabel="true click rate", ylabel="predicted click rate", xlim=(0.0, 0.3))
left.set_title("Linear chooses as well as Logistic")
right.set_title("but only Logistic predicts well")
left.legend()
right.legend()
plt.show()

# %% [markdown]
# Left: the mean, lowest and highest of ten worlds. Right: new advertisements in twenty groups of equal
# size, by their true click rate.
#
# **Take away:**
#
# - If you only rank, `sb.Linear()` is as good, and faster by about a quarter.
# - If you use the number, take `sb.Logistic()`: for an auction, a threshold, or to compare with a cost.
# - Our world has logistic clicks, which flatters Logistic. On real images [we
#   measured](../beyond-results.md#clicks) hardly a difference in the predictions.
# - `sb.Poisson()` does the same for counts.
#
# **Next:** [Late rewards](late-rewards.md): clicks come after a while, or never.
