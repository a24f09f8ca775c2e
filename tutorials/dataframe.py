# %% [markdown]
# # From a DataFrame to decisions
#
# *You learn how to turn tables of users and items into arms, and why users and items have to be multiplied.
# About 10 minutes. Needs `pip install '.[experiments]'` (pandas, scikit-learn, matplotlib).*
#
# A ticket shop shows one event to every visitor. It has a table of users and a table of events, with
# numbers, categorical columns, texts and dates. It wants to learn which event to show to whom.
#
# We invent both tables here, so that we know the truth and can say how good a choice was.
#
# Before you start Python, run `export OPENBLAS_NUM_THREADS=1`. Threads of BLAS, the library below numpy, make
# small products up to 20 times slower.

# %%
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from sklearn.compose import ColumnTransformer
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, Normalizer, OneHotEncoder, StandardScaler

import sketchbandit as sb

random = np.random.default_rng(0)
today = pd.Timestamp("2026-06-01")
users = pd.DataFrame(
    {
        "age": random.integers(18, 75, 500),
        "city": random.choice(["Turin", "Lyon", "Ghent"], 500),
        "has_app": random.choice([True, False], 500),
        "joined": today - pd.to_timedelta(random.integers(1, 1500, 500), unit="D"),
    }
)
styles = {
    "concert": ["loud", "indie", "brass"],
    "theatre": ["classic", "comedy", "mime"],
    "sport": ["derby", "marathon", "final"],
    "food": ["street", "wine", "vegan"],
}
kinds = [list(styles)[number % 4] for number in range(40)]
events = pd.DataFrame(
    {
        "title": [
            f"{random.choice(styles[kind])} {kind} {random.choice(['night', 'family', 'gala', 'premiere'])}"
            for kind in kinds
        ],
        "kind": kinds,
        "price": random.lognormal(3.0, 0.5, 40).round(2),
        "starts": [today + pd.Timedelta(days=int(day), hours=18) for day in random.integers(0, 28, 40)],
    }
)
print(users.head(3))
print()
print(events.head(3))

# %% [markdown]
# The truth is a table of probabilities: how likely each user is to click on each event. Young people like
# concerts, older people like the theatre, Turin likes food, Ghent likes sport. Cheap events and weekends do
# better with everybody. The bandit never sees this table.

# %%
age, city = users["age"].to_numpy()[:, None], users["city"].to_numpy()[:, None]
kind, price = events["kind"].to_numpy(), events["price"].to_numpy()
log_odds = (
    -2.2
    + 1.6 * ((age < 35) & (kind == "concert"))
    + 1.6 * ((age >= 55) & (kind == "theatre"))
    + 1.2 * ((city == "Turin") & (kind == "food"))
    + 1.2 * ((city == "Ghent") & (kind == "sport"))
    - 0.5 * np.log(price / 20.0)
    + 0.3 * (events["starts"].dt.day_of_week >= 5).to_numpy()
)
truth = 1.0 / (1.0 + np.exp(-log_odds))  # (users, events)
print(f"a random event:             {truth.mean():.1%} click")
print(f"one event for everybody:    {truth.mean(axis=0).max():.1%}, if it is the best one")
print(f"the best event for each:    {truth.max(axis=1).mean():.1%}")

# %% [markdown]
# ## Columns become numbers
#
# A policy reads numbers. scikit-learn's `ColumnTransformer` makes numbers of every kind of column:
#
# - a categorical column becomes one column for each value (`OneHotEncoder`);
# - a text becomes one column for each word (`TfidfVectorizer`);
# - a number is centred and divided by its deviation (`StandardScaler`), a skewed one after its logarithm;
# - a date becomes what matters about it: how long ago it is, or whether it is a weekend. The date itself
#   would grow for ever, and no scaling would fit for long.
#
# `Normalizer` then gives every row length one. The price of an event, say, cannot drown the rest of it, and
# the defaults of a policy suit rows of that length. Fit both transformers once, and save them beside the
# policy ([below](#save-and-load)): what it has learned holds for these columns only.


# %%
def days_ago(frame):
    return np.log1p((today - frame[["joined"]]).apply(lambda column: column.dt.days))


def is_weekend(frame):
    return frame[["starts"]].apply(lambda column: column.dt.day_of_week >= 5)


def same_names(_, names):
    return names


to_user = make_pipeline(
    ColumnTransformer(
        [
            ("age", StandardScaler(), ["age"]),
            ("city", OneHotEncoder(handle_unknown="ignore"), ["city"]),
            ("app", "passthrough", ["has_app"]),
            (
                "days",
                make_pipeline(FunctionTransformer(days_ago, feature_names_out=same_names), StandardScaler()),
                ["joined"],
            ),
        ],
        sparse_threshold=0.0,  # a dense array: there are few columns
        verbose_feature_names_out=False,
    ),
    Normalizer(),
)
to_event = make_pipeline(
    ColumnTransformer(
        [
            ("title", TfidfVectorizer(), "title"),
            ("kind", OneHotEncoder(), ["kind"]),
            (
                "price",
                make_pipeline(FunctionTransformer(np.log, feature_names_out="one-to-one"), StandardScaler()),
                ["price"],
            ),
            ("weekend", FunctionTransformer(is_weekend, feature_names_out=same_names), ["starts"]),
        ],
        sparse_threshold=0.0,
        verbose_feature_names_out=False,
    ),
    Normalizer(),
)
of_user = to_user.fit_transform(users).astype(float)
of_event = to_event.fit_transform(events).astype(float)
print("users: ", of_user.shape, *to_user.get_feature_names_out())
print("events:", of_event.shape, *to_event.get_feature_names_out()[-6:])

# %% [markdown]
# ## A policy remembers names
#
# Give it a DataFrame, and it remembers the columns. Another order is put right, and a missing column is an
# error. Without names, a swapped column would go unnoticed.

# %%
frame = pd.DataFrame(of_event, columns=to_event.get_feature_names_out())
named = sb.adaptive(frame.shape[1], seed=0)
chosen = named.select(frame)
named.update(frame.iloc[chosen], 1.0)
print("it knows", len(named.columns), "columns, among them", *named.columns[-2:])
print("another order, same means:", np.allclose(named.mean(frame), named.mean(frame[frame.columns[::-1]])))
try:
    named.select(frame.drop(columns="price"))
except sb.InputError as error:
    print("error:", error)

# %% [markdown]
# In the loops below we use arrays. Their order is fixed, and they are faster to make.
#
# ## Side by side: the trap
#
# The obvious arm is the user's features followed by the event's. A linear policy then predicts
#
#     reward = user · a + event · b
#
# The first part is the same for every event that this user could see. So it cannot change which event comes
# first: that is decided by `event · b`, and `b` is the same for everybody. The policy learns which events
# are popular, and nothing about taste. More data does not help.
#
# ## Products: the remedy
#
# A taste is a product: *young* times *concert*. Offer every product of a user's feature and an event's
# feature (the outer product), and the policy has a weight for each pair. A constant 1 among the user's
# features keeps the event's own features too, for what everybody likes.

# %%
with_one = np.column_stack([np.ones(len(users)), of_user])


def side_by_side(user):
    return np.hstack([np.tile(of_user[user], (len(of_event), 1)), of_event])


def products(user):
    return np.einsum("i,kj->kij", with_one[user], of_event).reshape(len(of_event), -1)


print("side by side:", side_by_side(0).shape, "products:", products(0).shape)

# %% [markdown]
# Six features of users, the constant and 26 features of events make 7 · 26 = 182 products. That is no
# trouble for a policy. With hundreds of features on either side `sb.adaptive` keeps a sketch instead of a
# large matrix, and [a catalogue](embeddings.md) makes the products without storing them.
#
# ## Play both
#
# Every round brings a random user. The policy shows an event, and learns whether it was clicked.
#
# - `scaling=None` tells `sb.adaptive` that the rows are scaled already.
# - `sb.Thompson(0.2)` explores more than the default does. Single clicks say little, and the same events
#   come again in every round, so it is easy to settle too early. (The default is `sb.Thompson("auto")`. It
#   has a scale of about 0.06 here. With it the click rate in the last quarter is 25 % side by side and 36 %
#   with products, instead of the rates printed below.)

# %%
rounds = 6_000  # short: 300
repeats = 5  # short: 1


def play(arms_of, seed):
    """The policy after the last round, and the click probability of every event it showed."""
    policy = sb.adaptive(arms_of(0).shape[1], scaling=None, explore=sb.Thompson(0.2), seed=seed)
    visits = np.random.default_rng(seed)
    shown = np.empty(rounds)
    for number in range(rounds):
        user = visits.integers(len(users))
        arms = arms_of(user)
        event = policy.select(arms)
        shown[number] = truth[user, event]
        policy.update(arms[event], float(visits.random() < truth[user, event]))
    return policy, shown


ways = {"side by side": side_by_side, "products": products}
played = {name: [play(arms_of, seed) for seed in range(repeats)] for name, arms_of in ways.items()}
for name, runs in played.items():
    late = np.mean([shown[-rounds // 4 :].mean() for _, shown in runs])
    print(f"{name}: {late:.1%} clicks in the last quarter")

# %% [markdown]
# What does each of them think is best for each user? We ask for the means, without any exploration.

# %%
favourites = {
    name: [int(played[name][0][0].mean(arms_of(user)).argmax()) for user in range(len(users))]
    for name, arms_of in ways.items()
}
for user in range(4):
    who = f"{users['age'][user]}, {users['city'][user]}"
    print(f"{who:10}", *(f"{name}: {events['title'][favourites[name][user]]:25}" for name in ways))
for name in ways:
    print(f"{name}: {len(set(favourites[name]))} different favourites among {len(users)} users")

# %% [markdown]
# Side by side, 500 different users get one and the same favourite. This was no lack of data. It follows
# from the formula.

# %%
figure, axes = plt.subplots()
block = rounds // 20
ends = np.arange(block, rounds + 1, block)
for name, runs in played.items():
    rates = np.array([shown.reshape(-1, block).mean(axis=1) for _, shown in runs])
    axes.plot(ends, rates.mean(axis=0), lw=2, label=name)
    axes.fill_between(ends, rates.min(axis=0), rates.max(axis=0), alpha=0.15)
levels = {
    "the best event for each user": truth.max(axis=1).mean(),
    "the best single event for all": truth.mean(axis=0).max(),
    "a random event": truth.mean(),
}
for text, height in levels.items():
    axes.axhline(height, color="0.5", lw=1, ls="--")
    axes.text(rounds, height, text, color="0.35", ha="right", va="bottom", fontsize=8)
axes.set(xlabel="rounds", ylabel="click rate", ylim=(0.15, 0.5))
axes.set_title("Only products of features learn what each user likes")
axes.legend(loc="upper left", bbox_to_anchor=(0.0, 0.8))
plt.show()

# %% [markdown]
# Lines are the mean of five runs, bands the lowest and the highest of them. A rate is the mean of the true
# click probabilities of the events shown, which scatters less than the clicks.
#
# Products pass the best single event, which is the most that side by side can ever reach. They do not get to
# the top line. One reason is that taste jumps at the ages of 35 and 55, while a product with age is a
# straight line: with age in three groups we measured 40 % in the last quarter. The other is that the policy
# still explores, and that some events are hard to tell apart by single clicks.
#
# ## Save and load
#
# The file of a policy holds numbers and settings, and no code. A loaded policy goes on as if it had never
# stopped.

# %%
policy, _ = played["products"][0]
policy.save("events.safetensors")
loaded = sb.load("events.safetensors", sb.LinUCB)
is_same = np.array_equal(loaded.mean(products(0)), policy.mean(products(0)))
print("rounds:", loaded.rounds, "same means:", is_same)

# %% [markdown]
# The transformers belong to scikit-learn. Save them with `joblib.dump(to_event, "to_event.joblib")`, and read
# them with `joblib.load`. joblib uses pickle, which can run code, so load only files that you trust.
# [skops](https://skops.readthedocs.io) asks before it loads a type that it does not know. A lambda as the
# function of a `FunctionTransformer` cannot be pickled. So use functions with a name, like `days_ago`, in a
# module that the loading program can import.
#
# **Take away:** put users and items side by side only if you do not want to tell users apart. Otherwise
# multiply them.
#
# **Next:** [Products with embeddings](embeddings.md), for large catalogues.
# [Features as they come](../scaling.md) says what `scaling=` does with raw columns.
