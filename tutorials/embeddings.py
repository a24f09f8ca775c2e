# %% [markdown]
# # Products with embeddings
#
# *You learn how to recommend from a catalogue of embeddings, and to improve on plain similarity by learning
# from clicks. About 8 minutes. Needs `pip install '.[experiments]'` (for matplotlib, and fast loops).*
#
# A shop has an embedding of every product and of every user, from some model of texts or pictures. It shows
# five products to each visitor: those most similar to the user. But that model was trained to tell what is
# alike. It was not trained to tell what people buy. Can clicks teach the rest?
#
# We invent 5,000 products and 300 users in 48 dimensions.

# %%
import matplotlib.pyplot as plt
import numpy as np

import sketchbandit as sb

random = np.random.default_rng(0)
dim = 48
centres = random.standard_normal((25, dim))


def embeddings(count):
    """Vectors of length one, in 25 clusters."""
    rows = centres[random.integers(25, size=count)] + 0.8 * random.standard_normal((count, dim))
    return (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float32)


products, users = embeddings(5_000), embeddings(300)

# %% [markdown]
# The truth: a click depends on `weights @ (user * product)`. A quarter of the dimensions matter much (style,
# say), the others hardly (the background of the photograph). Plain similarity gives all of them the same
# weight.

# %%
matters = random.random(dim) < 0.25
weights = np.where(matters, random.normal(3.0, 2.0, dim), random.normal(0.0, 0.2, dim))
weights /= np.linalg.norm(weights)


def click_chance(user, rows):
    return 1.0 / (1.0 + np.exp(3.0 - rows @ (5.0 * np.sqrt(dim) * user * weights)))


# %% [markdown]
# ## A catalogue
#
# `sb.Catalogue` prepares the products once. Every product has an id of yours. `half=True` keeps a second
# copy in 8 bits: a choice looks through that copy first, and only what may be among the best is computed in
# full. The choice is the same as without it.

# %%
names = [f"product-{number}" for number in range(len(products))]
catalogue = sb.Catalogue(products, ids=names, half=True)
print(catalogue)

# %% [markdown]
# An arm depends on the user too. A catalogue has three ways to combine the two, and none of them stores the
# combined arms:
#
# - `times(user)`: entry by entry. Use it when users and products live in the same space, as here. A linear
#   policy then learns a weight for every dimension. With all weights 1 it would be plain similarity.
# - `outer(user)`: all products of entries. Use it when a user has a few other features, such as a country
#   and an age. The length of an arm is the product of both lengths, so keep users short.
# - `beside(user)`: one after the other. This cannot tell users apart
#   ([the first tutorial](dataframe.md) shows why).
#
# The entries of vectors of length one are small. We multiply the users by √48: the combined arms then have
# about length one, which is what the defaults of a policy expect.

# %%
scaled = users * np.sqrt(dim)
offer = catalogue.times(scaled[0])
print(offer)
print(catalogue.outer([1.0, 0.0, 34.0]))  # a constant, a flag, an age
print("a typical arm has length", np.mean([np.linalg.norm(offer.arm(i)) for i in range(200)]).round(1))

# %% [markdown]
# ## Learn from clicks
#
# Each round a user comes and sees five products. `policy.top(offer, 5)` chooses them, `offer.arm(index)` is
# the arm to learn from, and `offer.ids[index]` the id to write into your log. After half of the rounds the
# collection changes: 1,000 products are retired and 1,000 new ones come.
#
# The policy is `sb.adaptive` with `scaling=None`, because embeddings have one scale already. It explores
# by `sb.Thompson(0.2)`, a bit more than the default, because single clicks are noisy.

# %%
rounds = 3_000  # short: 60
repeats = 3  # short: 1
new_products = embeddings(1_000)
new_names = [f"new-{number}" for number in range(len(new_products))]


def play(policy, seed):
    """For every round: the click chance of the five shown and of the five best, and the share of new ones."""
    visits = np.random.default_rng(seed)
    catalogue = sb.Catalogue(products, ids=names, half=True)
    rows, result = products, []
    for number in range(rounds):
        if number == rounds // 2:
            catalogue.retire(names[:1_000])
            catalogue.add(new_products, ids=new_names)
            rows = np.concatenate([products[1_000:], new_products])
        which = visits.integers(len(users))
        user, chances = users[which], click_chance(users[which], rows)
        if policy is None:  # plain similarity
            shown = np.argsort(rows @ user)[-5:]
        else:
            offer = catalogue.times(scaled[which])
            shown = policy.top(offer, 5)
            clicks = visits.random(5) < chances[shown]
            policy.update(offer.arms_at(shown), clicks.astype(float))
        best = np.argsort(chances)[-5:]
        new = [np.mean([catalogue.ids[i].startswith("new") for i in five]) for five in (shown, best)]
        result.append((chances[shown].mean(), chances[best].mean(), *new))
    return np.array(result).T


policies = [sb.adaptive(dim, scaling=None, explore=sb.Thompson(0.2), seed=seed) for seed in range(repeats)]
learned = np.mean([play(policy, seed) for seed, policy in enumerate(policies)], axis=0)
similar = np.mean([play(None, seed) for seed in range(repeats)], axis=0)
last = slice(-rounds // 4, None)
print(f"plain similarity:        {similar[0, last].mean():.1%} clicks in the last quarter")
print(f"learned weights:         {learned[0, last].mean():.1%}")
print(f"the five best there are: {learned[1, last].mean():.1%}")

# %% [markdown]
# ## New products need no warm-up
#
# The policy knows weights, not products. A new product has an embedding, so it is judged at once.

# %%
change = rounds // 2
after = slice(change, change + 50)
print("in the 50 rounds after the change, new are")
print(f"  {1_000 / len(products):.0%} of all products")
print(f"  {learned[2, after].mean():.0%} of those shown")
print(f"  {learned[3, after].mean():.0%} of the five best")

# %% [markdown]
# ## What has it learned?
#
# `policy.theta` has the weight of every dimension. We compare it with the truth, which only an invented
# world can tell.

# %%
theta = policies[0].theta[:dim]  # the last entry is that of the constant
print("correlation with the true weights:", np.corrcoef(theta, weights)[0, 1].round(2))

figure, axes = plt.subplots()
block = rounds // 30
ends = np.arange(block, rounds + 1, block)
for values, label in ((similar[0], "plain similarity"), (learned[0], "learned from clicks")):
    axes.plot(ends, values.reshape(-1, block).mean(axis=1), lw=2, label=label)
best = learned[1].reshape(-1, block).mean(axis=1)
axes.plot(ends, best, color="0.5", lw=1, ls="--", label="the five best there are")
axes.axvline(change, color="0.7", lw=1)
axes.text(change, 0.02, " 1,000 products replaced", color="0.35", fontsize=8)
axes.set(xlabel="rounds (five products each)", ylabel="click rate", ylim=(0.0, 0.45))
axes.set_title("A few hundred rounds of clicks beat plain similarity")
axes.legend(loc="lower right", bbox_to_anchor=(1.0, 0.1))
plt.show()

# %% [markdown]
# Lines are the mean of three runs, in which the users come in another order. The new products leave no dent:
# they are ranked by their embeddings.
#
# ## The same choices, less to read
#
# We said that `half=True` changes no choice. A catalogue without the copy has to agree:

# %%
plain = sb.Catalogue(products)
both = [
    [policies[0].top(arms.times(user), 5, random=np.random.default_rng(0)) for user in scaled]
    for arms in (plain, catalogue)
]
print("the same five for all 300 users:", np.array_equal(*both))

# %% [markdown]
# **Where this is too simple.** People click more on the first place than on the fifth, and we ignored that.
# And if clicks depend on something that no weights of dimensions can express, this policy cannot learn it.
# Compare with plain similarity, as above, before you rely on it.
#
# **Next:** [Clicks](clicks.md) has predictions that are probabilities.
# [Arms by the million](../catalogues.md) is about catalogues on a GPU.
