"""A client for the decision service. It has the methods of a policy and works over HTTP.

    from sketchbandit_service.client import Client

    with Client("http://127.0.0.1:8000") as client:
        shop = client.create("shop", dim=64)
        decision = shop.select(arms)              # like policy.select; arms[decision] is the arm
        shop.update(decision, reward=1.0)         # like policy.update, whenever the reward comes

``AsyncClient`` has the same methods as coroutines. A request that fails on the way is sent again. It carries
an idempotency key, so no decision is made twice and no reward is learned from twice.
"""

from sketchbandit.extras import how_to_install

try:
    import httpx  # noqa: F401  (to say which extra is missing)
except ModuleNotFoundError as error:
    raise ModuleNotFoundError(
        f"sketchbandit_service.client needs httpx: {how_to_install('client')}", name="httpx"
    ) from error

from sketchbandit_service.client.answers import Decision, ServiceError
from sketchbandit_service.client.asynchronous import AsyncBandit, AsyncClient
from sketchbandit_service.client.retries import Retries
from sketchbandit_service.client.synchronous import Bandit, Client

__all__ = ["AsyncBandit", "AsyncClient", "Bandit", "Client", "Decision", "Retries", "ServiceError"]
