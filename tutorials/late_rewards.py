# %% [markdown]
# # Late rewards
#
# *You learn how to keep decisions until their reward is known, what to do when none comes, and why chance
# helps meanwhile. About 8 minutes. Needs `pip install '.[experiments]'` (for matplotlib, and fast loops).*
#
# A shop shows one of 50 offers to every visitor. Some visitors buy, hours later. Most never do, and nobody
# reports that. These are delayed rewards, with three questions: when do we learn, what do we learn from
# silence, and how do we choose while we know nothing?

# %%
import warnings

import matplotlib.pyplot as plt
import numpy as np

import sketchbandit as sb


def world(seed):
    """The same 50 offers in every round; the typical one sells to one visitor in ten."""
    offers = sb.GaussianArms(dim=20, arms=50, fixed=True, seed=seed)
    return sb.Clicks(offers, base_rate=0.1, lift=4.0, seed=seed)


# %% [markdown]
# ## A queue of decisions
#
# A policy needs two things to learn: the arm that was chosen, and its reward. It does not mind when they
# come. So we keep the arm under the number of the decision until the reward is known. A decision without an
# answer after `patience` further decisions gets the default reward, 0: no purchase.


# %%
class Pending:
    """Decisions that wait for their reward, the oldest first."""

    def __init__(self, patience, default=0.0):
        self.patience, self.default = patience, default
        self.waiting = {}  # number: [arm, reward]

    def add(self, number, arm):
        """Keep a decision, with the default as its reward until another one comes."""
        self.waiting[number] = [arm.copy(), self.default]  # a copy: arms may be overwritten

    def answer(self, number, reward):
        """Note a reward. One that comes after the deadline is too late, and is dropped."""
        if number in self.waiting:
            self.waiting[number][1] = reward

    def take(self, number):
        """Remove a decision and return its arm; None if it is closed already."""
        return self.waiting.pop(number, [None])[0]

    def due(self, now):
        """Arm and reward of every decision whose time is over."""
        while self.waiting and now - next(iter(self.waiting)) >= self.patience:
            yield self.waiting.pop(next(iter(self.waiting)))


queue = Pending(patience=3)
queue.add(0, np.array([1.0, 0.0]))
queue.add(1, np.array([0.0, 1.0]))
queue.answer(1, reward=1.0)
print("after 2 decisions:", list(queue.due(2)))
print("after 4 decisions:", list(queue.due(4)))

# %% [markdown]
# In production the queue has to survive a restart: use a table of a database. The
# [decision service](../service.md) has one, with a timeout and a default reward.
#
# ## Three ways to learn
#
# - **at the deadline**: every decision is learned from when its time is over, with what has come until then;
# - **as they come**: a purchase at once, the zeros at the deadline;
# - **purchases only**: silence is ignored.
#
# The first looks slow. We shall see. Purchases here come 150 decisions later on average, and we wait for
# 500; 4 % of the purchases come too late.

# %%
rounds = 6_000  # short: 700
repeats = 8  # short: 1


def play(explore, learn, seed):
    """Regret after every decision, and whether the policy warned that the world had changed."""
    policy = sb.adaptive(20, scaling=None, explore=explore, seed=seed)
    delays = np.random.default_rng(seed)
    queue, arriving, lost = Pending(patience=500), {}, []
    for number, drawn in enumerate(world(seed).rounds(rounds)):
        for bought in arriving.pop(number, []):
            if learn == "at the deadline":
                queue.answer(bought, 1.0)
            elif (arm := queue.take(bought)) is not None:
                policy.update(arm, 1.0)
        for arm, reward in queue.due(number):
            if learn != "purchases only":
                policy.update(arm, reward)
        chosen = policy.select(drawn.arms)
        queue.add(number, drawn.arms[chosen])
        if drawn.reward(chosen):
            arriving.setdefault(number + 1 + int(delays.exponential(150.0)), []).append(number)
        lost.append(drawn.means.max() - drawn.means[chosen])
    return np.cumsum(lost), policy.health().world_changed


ways = {
    "Thompson, at the deadline": (sb.Thompson("auto"), "at the deadline"),
    "Thompson, as they come": (sb.Thompson("auto"), "as they come"),
    "UCB, at the deadline": (sb.UCB("auto"), "at the deadline"),
    "Thompson, purchases only": (sb.Thompson("auto"), "purchases only"),
}
with warnings.catch_warnings():
    warnings.simplefilter("ignore", sb.WorldChangedWarning)  # we count them instead
    played = {name: [play(*way, seed) for seed in range(repeats)] for name, way in ways.items()}
print("purchases lost, mean and worst:")
for name, runs in played.items():
    regret = [curve[-1] for curve, _ in runs]
    print(f"  {name:26} {np.mean(regret):5.0f} {max(regret):5.0f}")

# %% [markdown]
# **Purchases only** learns that everything sells. It never sees a 0, so it cannot tell offers apart.
#
# **As they come** is better, but still biased: the good news arrives first. Every offer looks like a
# success, until its zeros arrive. The policy follows whatever it has just sold. It even noticed that its
# predictions suddenly got worse, and warned that the world had changed:

# %%
for name, runs in played.items():
    print(f"{name:26} warned in {sum(warned for _, warned in runs)} of {repeats} runs")

# %% [markdown]
# **At the deadline** every offer is judged by complete answers. That is worth more than being early. (Where
# a "no" is reported as fast as a "yes", there is no such bias. Then learn from both as they come.)
#
# ## Why chance
#
# While rewards are on their way, a policy knows no more than before. UCB leaves nothing to chance: with the
# same numbers it makes the same choice, 500 times in a row. Thompson sampling draws a plausible world for
# every decision, so it tries many offers meanwhile.
#
# The same holds for a batch, such as the mails of one night: all decisions are made before the first reward.
# `select_many` takes the arms of many requests at once.

# %%
offers = next(world(0).rounds(1)).arms
batch = np.repeat(offers[np.newaxis], 200, axis=0)  # 200 visitors, 50 offers, 20 features
for rule in (sb.UCB("auto"), sb.Thompson("auto")):
    fresh = sb.adaptive(20, scaling=None, explore=rule, seed=0)
    fresh.update(offers[:10], [0.0, 1.0] * 5)  # a little is known
    chosen = fresh.select_many(batch)
    print(f"{type(rule).__name__:8} shows {len(set(chosen.tolist())):2} different offers to 200 visitors")

# %%
figure, axes = plt.subplots()
for name, runs in played.items():
    curves = np.array([curve for curve, _ in runs])
    axes.plot(np.arange(1, rounds + 1), curves.mean(axis=0), lw=2, label=name)
axes.axvline(500, color="0.7", lw=1)
axes.text(500, axes.get_ylim()[1], " the first deadline", color="0.35", fontsize=8, va="top")
axes.set(xlabel="decisions", ylabel="regret (purchases lost)", ylim=(0, None))
axes.set_title("Wait for complete answers, and let chance choose meanwhile")
axes.legend()
plt.show()

# %% [markdown]
# Lines are means of eight worlds. Up to the first deadline nobody knows anything, so the lines rise
# together. That part cannot be avoided; a shorter patience makes it shorter, but more purchases come too
# late and count as 0.
#
# This holds for the same offers in every round. Where every round brings other arms, UCB tries many things
# as well, and loses no more than Thompson sampling ([measured](../exploration.md#late-rewards)).
#
# **Next:** [Drift](drift.md): what was learned may no longer be true.
