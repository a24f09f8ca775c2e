"""Batches: every item succeeds or fails by itself."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, TypeVar

from pydantic import ValidationError

from sketchbandit.service.api.answers import failure
from sketchbandit.service.api.bodies import complaint
from sketchbandit.service.api.request_models import RequestModel
from sketchbandit.service.problems import Invalid, Problem, TooLarge
from sketchbandit.service.settings import Limits

T = TypeVar("T", bound=RequestModel)


async def handle_each(
    model: type[T], items: Sequence[Any], handle: Callable[[T], Awaitable[Any]], limits: Limits
) -> list[Any]:
    """What becomes of every item of a batch. Between two items others get their turn."""
    if not items:
        raise Invalid("the batch is empty")
    if len(items) > limits.batch:
        raise TooLarge(f"{len(items)} items; a batch has up to {limits.batch}")

    async def one(item: Any) -> Any:
        try:
            return await handle(model.model_validate(item))
        except ValidationError as error:
            return failure(complaint(error, model))
        except Problem as problem:
            return failure(problem)

    tasks = []
    for item in items:
        tasks.append(asyncio.ensure_future(one(item)))
        await asyncio.sleep(0)  # it goes as far as its commit
    return await asyncio.gather(*tasks)
