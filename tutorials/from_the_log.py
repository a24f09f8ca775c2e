# %% [markdown]
# # From the service's log to a better policy
#
# *You learn to run the decision service, to export its log, to estimate what other policies would have
# earned, and to start a better one from the same log. Reading time: 12 minutes. Extras: `service` and
# `evaluation`.*
#
# A shop shows each visitor one of five products. A decision service chooses, and learns from clicks. Somebody
# set it up quickly. Could another policy earn more? The log can answer that before you change anything.
#
# ## Start the service
#
# `sketchbandit serve` runs until it is stopped. It keeps all that it knows in a folder. This helper starts it
# on a free port, waits for the line with its address, and stops it at the end, also after an error.

# %%
import subprocess
import sys
import tempfile
from contextlib import contextmanager
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

import sketchbandit as sb
from sketchbandit.evaluation import read_log, train_and_judge
from sketchbandit_service.client import Client

SKETCHBANDIT = [sys.executable, "-m", "sketchbandit"]  # the command, in this environment
folder = tempfile.TemporaryDirectory()
state = Path(folder.name) / "state"


@contextmanager
def service():
    command = [*SKETCHBANDIT, "serve", "--state", str(state), "--port", "0", "--log-format", "text"]
    server = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        ready = server.stdout.readline()  # "dashboard: http://127.0.0.1:43210/"
        if not ready:
            raise RuntimeError(server.stderr.read())
        with Client(ready.split()[1].rstrip("/")) as client:
            yield client
    finally:
        server.terminate()
        server.communicate()


# %% [markdown]
# ## The shop
#
# Of every product we know the price in euros, the days since it came in, and three rates of about 0.005: how
# often it is returned, how often it is shared, and how often others clicked it. The rates matter most, and
# their numbers are tiny. Nobody in the shop thought about that.

# %%
rounds = 8_000  # short: 1_000
batch = 50  # visitors that come at the same time
visitors = np.random.default_rng(0)
typical = np.array([30.0, 100.0, 0.005, 0.005, 0.005])
spread = np.array([10.0, 30.0, 0.002, 0.002, 0.002])
taste = np.array([-0.3, -0.2, -0.6, 0.6, 1.0])  # per deviation; nobody knows this


def products():
    """Five products for each visitor of a batch."""
    return typical + spread * visitors.standard_normal((batch, 5, 5))


def clicks(shown):
    """Whether each visitor clicks the product that is shown."""
    odds = (shown - typical) / spread @ taste - 1.5
    return (visitors.random(len(shown)) < 1 / (1 + np.exp(-odds))).astype(float)


def serve_visitors(shop, count):
    """Decide, show, and report the clicks; one in ten is reported three batches late."""
    earned, waiting = [], []
    for now in range(count // batch):
        offered = products()
        decisions = shop.select_many(list(offered))  # one request
        rewards = clicks(offered[np.arange(batch), [decision.index for decision in decisions]])
        earned.extend(rewards)
        due = now + 3 * (visitors.random(batch) < 0.1)
        waiting += zip(due, decisions, rewards.tolist(), strict=True)
        shop.update_many([(decision, reward) for when, decision, reward in waiting if when <= now])
        waiting = [one for one in waiting if one[0] > now]
    return np.array(earned)


# %% [markdown]
# ## What runs today
#
# The live policy is `oful` on the features as they are. Two settings make its log useful:
#
# - `explore`: 30 % of the decisions are drawn uniformly. So every product has a chance, and the log knows how
#   large it was. Without chance the log says nothing about other policies.
# - `log_arms=True`: all five products of each decision go into the log, not only the one that was shown.

# %%
with service() as client:
    shop = client.create(
        "shop", dim=5, policy="oful", explore={"rule": "epsilon-greedy", "epsilon": 0.3}, log_arms=True
    )
    earned = serve_visitors(shop, rounds)
    stats = shop.stats()
print(f"{stats['decisions']} decisions, {stats['open']} of them still wait for their reward")
print(f"click rate: {earned.mean():.3f}")

# %% [markdown]
# The service has no seed: it draws from the operating system. So your numbers will differ a little from those
# on this page.
#
# ## Export the log, and judge
#
# The export works while the service runs, and also when it does not. `read_log` leaves out the decisions that
# still wait for a reward, and counts them.

# %%
path = Path(folder.name) / "log.parquet"
subprocess.run([*SKETCHBANDIT, "service", "export", str(state), str(path)], check=True, capture_output=True)
log = read_log(path, bandit="shop")
print(log)
print(log.left_out)

# %% [markdown]
# A candidate is a function that makes a fresh policy. Each one learns from the first half of the log, and is
# judged by the second half. A policy must never be judged by rows that it learned from. `sb.adaptive` scales
# the features by itself.

# %%
rarely = sb.EpsilonGreedy(0.1, seed=0)
found = train_and_judge(
    log,
    {
        "uniform": "uniform",
        "oful, explores less": lambda: sb.oful(5, explore=rarely),
        "adaptive": lambda: sb.adaptive(5, explore=rarely),
        "adaptive, logistic": lambda: sb.adaptive(5, rewards=sb.Logistic(), explore=rarely),
    },
    methods=("ips", "snips", "dr"),
)
print(found)

# %% [markdown]
# What runs today is little better than drawing at random. Its ridge hides the columns with tiny numbers,
# which matter most. So it goes by price and days alone.
#
# The three estimators agree, which is a good sign. The question is the difference to what runs today.
# `differences` answers it with a paired interval: what is good or bad luck for both cancels. `weights` says
# how far the log can be trusted: the mean weight should be near 1, and the effective size not below 30.

# %%
for difference in found.differences(method="dr"):
    verdict = "clear" if difference.is_clear else "not clear"
    low, high = difference.low, difference.high
    print(f"{difference.policy:20} {difference.value:+.3f}  ({low:+.3f} to {high:+.3f})  {verdict}")
weights = found.weights["adaptive, logistic"]
print(f"mean weight {weights.mean:.2f}, effective size {weights.effective_size:.0f} of {weights.decisions}")

# %% [markdown]
# ## Start the better one from the log
#
# The two adaptive candidates cannot be told apart. We take the logistic one, because its means are click
# rates.
#
# The service starts again on the same folder and goes on where it was. A new bandit with `from_="shop"` first
# learns from every reward in that log. So it does not begin with nothing.

# %%
with service() as client:
    better = client.create(
        "shop-2",
        dim=5,
        policy="adaptive",
        rewards="logistic",
        explore={"rule": "epsilon-greedy", "epsilon": 0.1},
        log_arms=True,
        from_="shop",
    )
    print("rewards learned before its first decision:", better.stats()["rounds"])
    new = serve_visitors(better, rounds)
print(f"click rate: {new.mean():.3f}, before {earned.mean():.3f}")

# %% [markdown]
# Did the log tell the truth? Below are the values that it promised, and the click rate that the new bandit
# then had in the service.

# %%
figure, axes = plt.subplots(figsize=(8, 3.6))
rows = [found.of(name, "dr") for name in found.policies]
values, heights = np.array([row.value for row in rows]), np.arange(len(rows))
errors = [values - [row.low for row in rows], [row.high for row in rows] - values]
axes.errorbar(values, heights, xerr=errors, fmt="o", lw=3, label="promised by the log, 95 %")
axes.axvline(found.logged.value, color="gray", label="what runs today")
axes.plot(new.mean(), heights[-1], "*", ms=14, label="then measured in the service")
axes.set_yticks(heights, [row.policy for row in rows])
axes.set(xlabel="click rate", title="The log knew beforehand what the new policy would earn")
axes.set_ylim(-0.5, len(rows) - 0.5)
axes.legend(loc="lower right")
plt.show()
folder.cleanup()

# %% [markdown]
# The promise was for a policy that has seen half of the log and learns nothing more. The new bandit has seen
# all of it and goes on learning. It also goes on exploring, in 10 % of its decisions. So its own log can
# judge the next idea.
#
# Another way leaves the bandit as it is: `shop.put_candidate(...)` lets a second policy learn beside the one
# that decides, and `shop.promote(...)` puts it in charge.
#
# **Next:** [What would another policy have earned?](../evaluation.md) has all estimators and when not to
# believe them. [The decision service](../service.md#candidates) has candidates and promotion.
