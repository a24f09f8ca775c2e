# %% [markdown]
# # Sketching a matrix that does not fit
#
# *You learn to read a large matrix once, in pieces, and to get its leading singular values and directions
# with a certificate of the error. Reading time: 10 minutes. Extras: `files`, `sklearn`.*
#
# A matrix X has many rows and hundreds of columns. It lies on disk and does not fit into memory. Which
# directions carry most of it? An SVD would need all of X at once. A **sketch** reads the rows once and keeps
# a small matrix S and a number e, the **certificate**, with
#
#     S'S  ⪯  X'X  ⪯  S'S + e·I
#
# So in no direction X has less than S, and in no direction more than e above it. You know e at every moment,
# without a second look at X.
#
# ## A matrix on disk
#
# The matrix of this page is small, so that the page is quick and we can check every claim. `open_memmap`
# makes a file that is written and read in pieces. Only the piece at hand is in memory.

# %%
import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

import sketchbandit as sb
from sketchbandit import outofcore
from sketchbandit.sklearn import SketchedPCA

folder = tempfile.TemporaryDirectory()
file = Path(folder.name) / "big.npy"
rows = 40_000  # short: 2_000
columns, piece = 800, 500
random = np.random.default_rng(0)
decay = np.arange(1, columns + 1) ** -0.75  # a heavy tail: no direction is negligible
rotation = np.linalg.qr(random.standard_normal((columns, columns)))[0]

matrix = np.lib.format.open_memmap(file, mode="w+", dtype=np.float32, shape=(rows, columns))
for start in range(0, rows, piece):
    matrix[start : start + piece] = (random.standard_normal((piece, columns)) * decay) @ rotation
matrix.flush()
print(f"{matrix.nbytes / 1e6:.0f} MB on disk")

# %% [markdown]
# ## Sketch it in pieces
#
# `FrequentDirections` keeps at most `size - 1` rows, and a buffer for new ones: until the next shrink there
# are up to `2 * size` rows in all. `compress` shrinks at once. `update` takes any number of rows.

# %%
matrix = np.load(file, mmap_mode="r")
sketch = sb.FrequentDirections(columns, size=60)
for start in range(0, rows, piece):
    sketch.update(matrix[start : start + piece])

print(f"rows read: {sketch.count}, rows kept: {len(sketch.rows)}, memory: {sketch.nbytes / 1e6:.1f} MB")
print(f"certificate: {sketch.error_bound / sketch.mass:.2%} of the mass (the sum of all squares)")

# %% [markdown]
# Is the certificate honest? Here we can afford to compute X'X and look.

# %%
exact = np.zeros((columns, columns))
for start in range(0, rows, piece):
    part = matrix[start : start + piece].astype(np.float64)
    exact += part.T @ part
true_error = np.linalg.norm(exact - sketch.rows.T @ sketch.rows, 2)
print(f"true error: {true_error / sketch.mass:.2%} of the mass")
print("within the certificate:", true_error <= sketch.error_bound)

# %% [markdown]
# ## Singular values with intervals
#
# By the inequality above every squared singular value of X lies between that of S and that of S plus e.
# `sb.spectrum` gives these intervals.

# %%
found = sb.spectrum(sketch, 5)
true_sigma = np.sqrt(np.linalg.eigvalsh(exact)[::-1])
for i in range(5):
    low, high = np.sqrt(found.lower[i]), np.sqrt(found.upper[i])
    print(f"singular value {i + 1}: between {low:.1f} and {high:.1f}, in truth {true_sigma[i]:.1f}")

# %% [markdown]
# ## Say the error instead of the size
#
# Which size do you need? `AdaptiveSketch` takes the error you can bear, `epsilon`, and keeps as few rows as
# that allows. With `horizon`, the number of rows to come, it spends the budget evenly.

# %%
for share in (0.05, 0.02, 0.01):
    adaptive = sb.AdaptiveSketch(columns, epsilon=share * sketch.mass, horizon=rows)
    for start in range(0, rows, piece):
        adaptive.update(matrix[start : start + piece])
    held = adaptive.error_bound / adaptive.mass
    print(f"at most {share:.0%} of the mass: {adaptive.row_count:3} rows kept, certificate {held:.2%}")

# %% [markdown]
# ## Two halves, two machines
#
# Sketches merge, and certificates add up. So several processes or machines can each read a part. `save` and
# `sb.load` carry a sketch from one to the other.

# %%
halves = [sb.FrequentDirections(columns, size=60) for _ in range(2)]
for half, part in zip(halves, (matrix[: rows // 2], matrix[rows // 2 :]), strict=True):
    half.update(part)
second = Path(folder.name) / "second.safetensors"
halves[1].save(second)

merged = halves[0]
merged.merge(sb.load(second, sb.FrequentDirections))
print(f"rows read: {merged.count}, certificate {merged.error_bound / merged.mass:.2%} of the mass")

# %% [markdown]
# ## One command
#
# All of that is one command. It reads `.npy`, `.parquet`, `.csv` and sparse `.npz` files, many at once, in
# several processes. It prints the singular values with their intervals and draws them. After Ctrl-C it goes
# on with `--resume`.
#
# ```console
# $ sketchbandit sketch big.npy --size 60 --out sketch.safetensors
# ```
#
# From Python it is `outofcore.sketch`:

# %%
made = outofcore.sketch(file, size=60, jobs=1)
print(f"rows kept: {len(made.rows)}, certificate {made.error_bound / made.mass:.2%} of the mass")

# %% [markdown]
# Its certificate is smaller. Up to 16·size columns the command adds up X'X, which is cheaper than a stream of
# shrinks, and cuts once, at the end. No sketch of so few rows has a smaller error. With more columns it reads
# as a stream, in 2·size·columns numbers.
#
# **At size**: 10 GB (1,250,000 × 1,000, size 100) took 19 seconds and 486 MB on two cores, where reading the
# file alone took 6 ([which tool for which size](../sizes.md)). If X fits into memory, use an ordinary SVD or
# PCA: it is exact.
#
# ## Principal components
#
# PCA needs centred rows. `SketchedPCA` follows the mean on the way, in one pass, and tells up to where each
# variance may lie.

# %%
pca = SketchedPCA(n_components=3)
for start in range(0, rows, piece):
    pca.partial_fit(matrix[start : start + piece])
for variance, upper in zip(pca.explained_variance_, pca.explained_variance_upper_, strict=True):
    print(f"explained variance between {variance:.3f} and {upper:.3f}")

# %% [markdown]
# ## The picture
#
# The bands of three sketches, and the true spectrum. Every band holds it. More rows make it narrower, and
# they matter most for the small singular values.

# %%
figure, axes = plt.subplots(figsize=(8, 4.2))
for size in (20, 60, 180):
    band = sb.FrequentDirections(columns, size=size)
    for start in range(0, rows, piece):
        band.update(matrix[start : start + piece])
    leading = sb.spectrum(band, size - 1)
    inside = (leading.lower <= true_sigma[: size - 1] ** 2) & (true_sigma[: size - 1] ** 2 <= leading.upper)
    print(f"size {size}: {inside.sum()} of {len(inside)} true singular values lie in their interval")
    places = np.arange(1, size)
    axes.fill_between(
        places, np.sqrt(leading.lower), np.sqrt(leading.upper), alpha=0.35, label=f"certified, size {size}"
    )
axes.plot(np.arange(1, 301), true_sigma[:300], color="black", lw=1.2, label="true")
axes.set(xscale="log", yscale="log", ylim=(true_sigma[300] / 2, 1.3 * true_sigma[0]))
axes.set(xlabel="i: the largest, the second largest, …", ylabel="singular value")
axes.set_title("The true singular values lie in the certified bands; more rows certify more of them")
axes.legend()
plt.show()
folder.cleanup()

# %% [markdown]
# **Next:** [Matrices larger than memory](../large-data.md) has Dask, all options of the command and the
# estimators for scikit-learn. [Writing a sketch](new-sketch.md) shows how to bring one of your own.
