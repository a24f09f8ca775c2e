"""The examples of a newcomer, with the defaults only: what they earn beside the best fixed choice."""

from examples import router, shop


def test_a_router_earns_more_than_its_best_model() -> None:
    """Rewards are positive, and a better model comes midway; in 0.14 it earned less in 18 of 20 runs."""
    for seed in range(5):
        earned = router.route(seed)
        assert earned["router"] > 1.05 * earned["best fixed model"]
        assert earned["router"] < earned["best for every prompt"]


def test_a_shop_earns_more_than_a_uniform_choice() -> None:
    """In short form: revenue is 0 or positive, features are raw, prices drift."""
    for seed in range(2):
        earned = shop.sell(seed, visitors=600)
        assert earned["policy"] > 1.2 * earned["uniform"]
        assert earned["best for every visitor"] > earned["best fixed product"] > earned["uniform"]
