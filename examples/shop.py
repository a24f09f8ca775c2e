"""What to show in a shop: revenue is 0 or positive, features are raw, and prices drift.

python examples/shop.py
"""

import numpy as np

import sketchbandit as sb

PRODUCTS, FEATURES = 8, 3 + 3 + 9 + 8


def sell(seed: int, visitors: int = 3_000) -> dict[str, float]:
    """The mean revenue: of the policy, of the best product alone, and of two yardsticks."""
    random = np.random.default_rng(seed)
    price = np.exp(random.normal(3.3, 0.6, PRODUCTS))  # 27 or so
    weight = random.uniform(50.0, 5_000.0, PRODUCTS)  # grams
    rating = random.uniform(2.5, 5.0, PRODUCTS)
    taste = random.normal(0.0, 0.5, (PRODUCTS, 3))
    appeal = random.normal(-1.5, 0.5, PRODUCTS)

    policy = sb.adaptive(FEATURES, seed=seed)
    earned, offered = 0.0, np.zeros((visitors, PRODUCTS))
    for t in range(visitors):
        price = price * np.exp(random.normal(0.0, 0.01, PRODUCTS))  # half as much, or double, in the end
        visitor = random.normal([45.0, 12.0, 300.0], [15.0, 6.0, 120.0])  # age, hour, seconds on the page
        liking = taste @ ((visitor - [45.0, 12.0, 300.0]) / [15.0, 6.0, 120.0])
        chance = 1.0 / (1.0 + np.exp(0.8 * np.log(price / 27.0) - appeal - liking))
        baskets = price * random.lognormal(0.0, 0.3, PRODUCTS) * (random.random(PRODUCTS) < chance)
        offered[t] = price * chance * np.exp(0.3**2 / 2.0)  # the expected revenue

        product = np.column_stack([price, weight, rating])
        both = np.einsum("kf,v->kfv", product, visitor).reshape(PRODUCTS, -1)
        arms = np.hstack([np.tile(visitor, (PRODUCTS, 1)), product, both, np.eye(PRODUCTS)])
        shown = policy.select(arms)
        policy.update(arms[shown], float(baskets[shown]))
        earned += offered[t, shown] / visitors
    return {
        "policy": earned,
        "best fixed product": float(offered.mean(axis=0).max()),
        "best for every visitor": float(offered.max(axis=1).mean()),
        "uniform": float(offered.mean()),
    }


def main(runs: int = 20) -> None:
    """Play some worlds, and print what was earned: the mean and the worst run, as a share of the best."""
    played = [sell(seed) for seed in range(runs)]
    for name in played[0]:
        values = [one[name] for one in played]
        shares = [one[name] / one["best fixed product"] for one in played]
        print(f"{name:22} {np.mean(values):6.2f}, worst {min(shares):5.1%} of the best fixed product")
    beaten = sum(one["policy"] < one["best fixed product"] for one in played)
    print(f"the policy earned less than the best fixed product in {beaten} of {runs} runs")


if __name__ == "__main__":
    main()
