# %% [markdown]
# # A separate model per action
#
# *You learn to give every action its own model, to add and retire actions, and when one shared model is
# better. Reading time: 10 minutes. Extras: `experiments` (for the picture).*
#
# A shop has a few banners. They have names and no features. All that is known is the visitor. Then every
# banner gets a model of its own, which predicts the reward of that banner from the features of the visitor.
# The literature calls these **disjoint models** (disjoint LinUCB). Here it is `sb.PerAction`.

# %%
import matplotlib.pyplot as plt
import numpy as np

import sketchbandit as sb

random = np.random.default_rng(0)
features = 10  # of a visitor
banners = ["red", "green", "blue"]
taste = {name: random.standard_normal(features) for name in [*banners, "yellow"]}  # nobody knows this


def visitor():
    return random.standard_normal(features) / np.sqrt(features)


def reward(context, banner):
    return context @ taste[banner] + 0.3 * random.standard_normal()


# %% [markdown]
# ## Choose and learn
#
# `PerAction` takes the names and a function that makes one policy. Every action gets a copy of that policy.
# All other calls are those of a policy, with a context in place of arms and names in place of indices. With
# `floor=0.05` five per cent of the choices are drawn uniformly, so that every action keeps a chance.


# %%
def model():
    return sb.adaptive(features, explore=sb.Thompson("auto", floor=0.05, seed=0))


models = sb.PerAction(banners, model)

for _ in range(600):
    context = visitor()
    banner = models.select(context)  # a name
    models.update(context, banner, reward(context, banner))

context = visitor()
print("estimated:", dict(zip(models.actions, models.mean(context).round(2).tolist(), strict=True)))
print("true:     ", {name: round(float(context @ taste[name]), 2) for name in banners})

# %% [markdown]
# `choose` tells more than `select`: the probability of the choice, the mean, and the width (how unsure the
# model is). Log the probability with every decision. With it you can later estimate what another policy would
# have earned.

# %%
choice = models.choose(context)
print(f"{choice.action}: probability {choice.probability:.3f}", end=", ")
print(f"mean {choice.mean:.2f}, width {choice.width:.2f}")
chances = models.probabilities(context)  # of the next choice
print("probabilities:", dict(zip(models.actions, chances.round(3).tolist(), strict=True)))

# %% [markdown]
# ## Actions come and go
#
# A new action starts with the mean of all rewards and the widest uncertainty, so it is tried soon
# ([measured](../bandits.md#one-model-per-action)). A retired action is never chosen again. Its model
# still learns, because of delayed rewards. If you add it again, it knows what it knew.

# %%
models.add("yellow")
models.retire("red")
models.update(context, "red", 1.0)  # a late reward
print("offered:", models.actions, "retired:", models.retired)

chosen = []
for _ in range(300):
    context = visitor()
    chosen.append(models.select(context))
    models.update(context, chosen[-1], reward(context, chosen[-1]))
for start in (0, 100, 200):
    part = chosen[start : start + 100]
    print(f"choices {start + 1} to {start + 100}:", {name: part.count(name) for name in models.actions})

# %% [markdown]
# `models["green"]` is the model of one action, an ordinary policy. `models.save(path)` and `sb.load(path,
# sb.PerAction)` work as for any policy.
#
# ## When one shared model learns faster
#
# Separate models share nothing. What you learn about the red banner tells you nothing about the green one.
# With 30 actions you need 30 times the data.
#
# If actions have features, one shared model over *arms* can use them. An arm is then made of the visitor and
# the action together. The usual way is the outer product: every feature of the visitor times every feature of
# the action. Simply putting both lists one after the other is not enough: then the visitor adds the same
# number to every action, and the order of the actions is the same for everybody.
#
# We compare both in two worlds with 30 actions, of 4 known features each.
#
# - **World A**: the features of an action explain all of its reward.
# - **World B**: they explain half of it. The other half belongs to the action alone.
#
# A third contender has both parts: the outer product, and after it one block of columns for every action (the
# *hybrid* model of Li et al. 2010).
#
# All features have the same scale here, so the policies read them as they are: `scaling=None,
# intercept=False`. Rewards have mean 0, so nothing is lost. The default loses about a tenth more.

# %%
rounds = 6_000  # short: 300
many, known = 30, 4
described = random.standard_normal((many, known)) / np.sqrt(known)  # what is known of every action
common = random.standard_normal((known, features))
own = random.standard_normal((many, features))
worlds = {
    "A: features explain all": described @ common,
    "B: features explain half": np.sqrt(0.5) * (described @ common) + np.sqrt(0.5) * own,
}


def policy(dim):
    return sb.adaptive(dim, explore=sb.Thompson("auto", seed=0), scaling=None, intercept=False)


def shared_arms(context):
    """(30, 40): the outer product of an action's features and the visitor's."""
    return np.einsum("ak,f->akf", described, context).reshape(many, -1)


def hybrid_arms(context):
    """(30, 340): the same, then a block for every action, empty but for its own."""
    return np.hstack([shared_arms(context), np.kron(np.eye(many), context)])


class Separate:
    """One model per action."""

    def __init__(self):
        self.models = sb.PerAction(range(many), lambda: policy(features))

    def play(self, context, rewards):
        action = self.models.select(context)
        self.models.update(context, action, rewards[action])
        return action


class Together:
    """One policy over arms."""

    def __init__(self, arms_of, dim):
        self.arms_of = arms_of
        self.policy = policy(dim)

    def play(self, context, rewards):
        arms = self.arms_of(context)
        action = self.policy.select(arms)
        self.policy.update(arms[action], rewards[action])
        return action


regret = {}
for world, thetas in worlds.items():
    players = {
        "separate models": Separate(),
        "one shared model": Together(shared_arms, known * features),
        "hybrid": Together(hybrid_arms, known * features + many * features),
    }
    drawn = np.random.default_rng(1)
    lost = {name: np.zeros(rounds) for name in players}
    for round_ in range(rounds):
        context = drawn.standard_normal(features) / np.sqrt(features)
        means = thetas @ context
        rewards = means + 0.3 * drawn.standard_normal(many)
        for name, player in players.items():
            lost[name][round_] = means.max() - means[player.play(context, rewards)]
    regret[world] = {name: values.cumsum() for name, values in lost.items()}

for world, totals in regret.items():
    for name, total in totals.items():
        late = total[-1] - total[-rounds // 3]
        print(f"{world:26} {name:17} regret {total[-1]:5.0f}, in the last third {late:4.0f}")

# %% [markdown]
# In world A the shared model is far ahead: it learns 40 numbers, and the separate models learn 300. In world
# B the shared model cannot express what is special about an action. It keeps losing at the same rate, for
# ever. The separate models pay for their 300 numbers at first, in both worlds, and then lose little. The
# hybrid model ends between the two in both worlds, nearer to the better one. In world B it even leads for the
# first half.

# %%
figure, panels = plt.subplots(1, 2, figsize=(9, 3.8), sharey=True, layout="constrained")
for panel, (world, totals) in zip(panels, regret.items(), strict=True):
    for name, total in totals.items():
        panel.plot(np.arange(1, rounds + 1), total, label=name)
    panel.set(title=f"World {world}", xlabel="round")
    panel.grid(alpha=0.3)
panels[0].set_ylabel("regret (lower is better)")
panels[0].legend()
figure.suptitle("A shared model learns faster, if the features of the actions tell enough")
plt.show()

# %% [markdown]
# **Rules of thumb.** Few actions without features, and much traffic: `sb.PerAction`. Many actions with good
# features: one policy over outer products. If you do not know whether the features tell enough: the hybrid
# model.
#
# **Next:** [One model per action](../bandits.md#one-model-per-action) has merging, batches and the hybrid
# model with sparse arms. [From the service's log to a better policy](from-the-log.md) uses the probabilities
# that `choose` returns.
