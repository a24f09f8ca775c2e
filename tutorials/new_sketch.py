# %% [markdown]
# # Writing a sketch
#
# *You learn to write a sketch of your own in 50 lines, to test it with the laws that the library ships, and
# to use it in a bandit. Reading time: 12 minutes. Extras: `testing`, `experiments` (for the picture).*
#
# A sketch reads rows and keeps a small matrix S and a certificate e. At every moment
#
#     S'S  ⪯  X'X  ⪯  S'S + e·I
#
# must hold, where X are all rows so far. That is the contract. A policy needs nothing else from it.
#
# Our idea: collect rows, and when there are 2·size of them, keep the `size` leading directions of an SVD and
# drop the others. This is a **truncated SVD**. It is the first thing most people try. What is dropped must be
# certified: if the largest squared singular value that we drop is s, then no direction has lost more than s.
# So e grows by s.
#
# ## The class
#
# The base class `sb.Sketch` checks rows, counts them, merges, saves and loads. Ours says what it keeps.

# %%
import inspect
import warnings

import matplotlib.pyplot as plt
import numpy as np

import sketchbandit as sb
from sketchbandit.testing import SketchLaws


class TruncatedSVD(sb.Sketch):
    """Keeps the leading directions as they are, drops the others, and counts what that may cost."""

    kind = "tutorial-truncated-svd"  # the name that files use

    def __init__(self, dim, *, size=50, compensation=0.0, dtype=np.float64):
        super().__init__(dim, dtype)
        self._size, self._compensation = size, compensation
        self._rows = np.empty((0, dim), self.dtype)
        self._lost = 0.0

    size = property(lambda self: self._size)
    error_bound = property(lambda self: self._lost)  # e
    alpha = property(lambda self: self._compensation * self._lost)  # X'X is estimated by S'S + alpha·I
    nbytes = property(lambda self: self._rows.nbytes)

    @property
    def rows(self):  # S: read-only, and no later update writes to it
        view = self._rows[:]
        view.flags.writeable = False
        return view

    def _ingest(self, rows):  # rows are checked, dense, and not zero
        change = sb.Change()
        while len(rows):
            room = 2 * self._size - len(self._rows)
            taken, rows = rows[:room], rows[room:]
            self._rows = np.vstack([self._rows, taken])
            change = change.then(sb.Change(appended=len(taken)))
            if len(self._rows) == 2 * self._size:
                self._cut()
                change = change.then(sb.Change(rebuilt=True, orthogonal=True))
        return change

    def _cut(self):
        _, sigma, directions = np.linalg.svd(self._rows.astype(np.float64), full_matrices=False)
        kept = sigma[: self._size, np.newaxis] * directions[: self._size]
        self._rows = kept.astype(self.dtype)
        if len(sigma) > self._size:
            self._lost += float(sigma[self._size] ** 2)

    def _forget(self, factor):  # older rows count less
        self._rows = np.asarray(self._rows * np.sqrt(factor), self.dtype)
        self._lost *= factor
        return sb.Change(rebuilt=True)

    def _absorb(self, other):  # merge: another of the same settings
        self._lost += other._lost
        self._ingest(other._rows)

    def _settings(self):  # the arguments of the constructor
        shape = {"dim": self.dim, "size": self._size, "dtype": self.dtype.name}
        return {**shape, "compensation": self._compensation}

    def _state(self):  # what a file keeps: numbers, arrays
        return {"lost": self._lost}, {"rows": self._rows}

    def _restore(self, scalars, arrays):
        self._lost, self._rows = scalars["lost"], arrays["rows"]


# %% [markdown]
# `_ingest` returns a `Change`. It tells the policy whether rows were only appended, which is cheap to follow,
# or whether everything was rebuilt. When in doubt, say `sb.Change(rebuilt=True)`: it is slower, never wrong.
#
# ## The laws
#
# `sketchbandit.testing` has the contract as test classes. You inherit from `SketchLaws` and say how a sketch
# is made. `pytest` then runs every law on streams that are made to be hard: tiny, huge, repeated, low-rank
# and ill-conditioned rows. Here we run those laws by hand that need nothing from pytest.

# %%
prefix = "test_"  # short: "test_bracket"


class TestTruncatedSVD(SketchLaws):
    def make(self, dim, size, dtype=np.float64):
        return TruncatedSVD(dim, size=size, compensation=1.0, dtype=dtype)


def run_laws(tests):
    """Run all laws that take no argument; returns what failed."""
    failed, passed = {}, 0
    for name, law in inspect.getmembers(tests):
        if name.startswith(prefix) and not inspect.signature(law).parameters:
            try:
                law()
                passed += 1
            except AssertionError as error:
                failed[name] = str(error).splitlines()[0]
    print(f"{type(tests).__name__}: {passed} laws hold, {len(failed)} do not")
    return failed


print(run_laws(TestTruncatedSVD()))

# %% [markdown]
# Would they notice a mistake? Suppose that we certify the mean of what was dropped instead of the largest. On
# most data nobody would ever see the difference.


# %%
class Optimistic(TruncatedSVD):
    kind = "tutorial-optimistic"

    def _cut(self):
        sigma_sq = np.linalg.svd(self._rows.astype(np.float64), compute_uv=False) ** 2
        before = self._lost
        super()._cut()
        if len(sigma_sq) > self._size:
            self._lost = before + float(sigma_sq[self._size :].mean())


class TestOptimistic(SketchLaws):
    def make(self, dim, size, dtype=np.float64):
        return Optimistic(dim, size=size, dtype=dtype)


failed = run_laws(TestOptimistic())
for name in failed:
    print(f"  {name}")
print(failed["test_bracket_at_every_step"])

# %% [markdown]
# In your project the class goes into a test file, and `pytest` does the rest.
#
# ## In a bandit
#
# `sb.LinUCB` takes any sketch. We compare with exact LinUCB (`sb.oful`). Every policy watches its own sketch,
# and warns if its error grows too fast. We collect these warnings.

# %%
rounds = 3_000  # short: 200
dim, size = 200, 20
world = sb.GaussianArms(dim=dim, arms=20, spectrum="power-law", decay=1.0, seed=1)
played = {}


def play(name, policy):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        played[name] = list(sb.play(policy, world, rounds, every=20))
    last = played[name][-1]
    print(f"{name:32} regret {last.total_regret:5.1f}, certificate {last.certificate:4.1f}")
    for warning in caught:
        print("   ", str(warning.message).split(":")[0])


play("exact", sb.oful(dim))
play("truncated SVD", sb.LinUCB(TruncatedSVD(dim, size=size)))

# %% [markdown]
# The warning is right. The policy solves a linear system with S'S in it. In the directions that were dropped
# S'S is far too small, and so the solution is far too large there.
#
# The remedy is the other number of a sketch, `alpha`: X'X is estimated by S'S + alpha·I. With
# `compensation=1.0` ours says alpha = e, so what was lost counts as ridge. The paper's CBSCFD (`sb.cbscfd`)
# does the same with Frequent Directions, which also reduces the directions that it keeps. For that price it
# promises e ≤ mass/size on every stream. Ours promises nothing, and its certificate is larger.

# %%
play("truncated SVD, compensated", sb.LinUCB(TruncatedSVD(dim, size=size, compensation=1.0)))
play("Frequent Directions, compensated", sb.cbscfd(dim, size=size))

# %%
figure, (left, right) = plt.subplots(1, 2, figsize=(9.5, 3.8))
for name, results in played.items():
    steps = [result.round for result in results]
    left.plot(steps, [result.certificate for result in results], label=name)
    right.plot(steps, [result.total_regret for result in results], label=name)
left.set(title="Certificate of the sketch", xlabel="round", ylabel="e")
right.set(title="Regret of the policy", xlabel="round", ylabel="regret (lower is better)")
right.legend()
figure.suptitle("Our sketch is nearly as good as exact, once the policy knows what was lost")
plt.show()

# %% [markdown]
# With 20 directions of 200, our compensated sketch loses hardly more than exact LinUCB. A policy with our
# sketch can be saved and loaded, because the class has a `kind`.
#
# **Next:** [Extending](../extending.md#a-sketch) has the optional promises (`guarantee`, `exact_rank` and
# others) and how `sb.register` gives your policy a name. [Writing an exploration rule](new-rule.md) is the
# next part to replace.
