"""Which language model answers which prompt: five models that cost, and a better one that comes later.

python examples/router.py
"""

import numpy as np

import sketchbandit as sb

DIM, KINDS, NAMES = 384, 8, ("tiny", "small", "medium", "large", "huge", "new")
COST = np.array([0.02, 0.05, 0.10, 0.15, 0.25, 0.08])


def route(seed: int, prompts: int = 500) -> dict[str, float]:
    """The mean reward, quality less cost: of the router, of the best model alone, and of two yardsticks."""
    random = np.random.default_rng(seed)
    quality = np.clip(random.normal([*[0.72] * 5, 0.87], 0.18, (KINDS, 6)), 0.0, 1.0)
    kinds = random.integers(KINDS, size=prompts)  # nobody knows the kind of a prompt, ...
    centres = random.standard_normal((KINDS, DIM))
    embeddings = centres[kinds] + 0.6 * random.standard_normal((prompts, DIM))  # ... only its embedding
    embeddings /= np.linalg.norm(embeddings, axis=1, keepdims=True)
    pays = (quality - COST)[kinds]
    rewards = pays + 0.05 * random.standard_normal(pays.shape)

    router = sb.PerAction(NAMES[:5], lambda: sb.adaptive(DIM, seed=seed))
    earned, half = 0.0, prompts // 2
    for t, prompt in enumerate(embeddings):
        if t == half:
            router.add("new")
        name = router.select(prompt)
        place = NAMES.index(str(name))
        router.update(prompt, name, float(rewards[t, place]))
        earned += pays[t, place] / prompts
    offered = np.where((np.arange(prompts) < half)[:, np.newaxis] & (np.arange(6) == 5), np.nan, pays)
    return {
        "router": earned,
        "best fixed model": float(pays[:, :5].mean(axis=0).max()),
        "best for every prompt": float(np.nanmax(offered, axis=1).mean()),
        "uniform": float(np.nanmean(offered, axis=1).mean()),
    }


def main(runs: int = 20) -> None:
    """Play some worlds, and print what was earned: the mean and the worst run."""
    played = [route(seed) for seed in range(runs)]
    for name in played[0]:
        values = [one[name] for one in played]
        print(f"{name:22} {np.mean(values):6.3f}, worst {min(values):6.3f}")
    beaten = sum(one["router"] < one["best fixed model"] for one in played)
    print(f"the router earned less than the best fixed model in {beaten} of {runs} runs")


if __name__ == "__main__":
    main()
