"""Handlers of the routes for candidates. Their docstrings appear in /docs."""

from sketchbandit_service.api.answers import bandit_answer, candidate_answer, response
from sketchbandit_service.api.request_models import CandidateRequest, PromoteRequest, bandit_name
from sketchbandit_service.api.request_reader import parse
from sketchbandit_service.api.routing import Call
from sketchbandit_service.http.messages import Response
from sketchbandit_service.problems import Invalid


async def list_candidates(call: Call) -> Response:
    """List all candidates of a bandit."""
    bandit = call.bandit
    bandit.about()
    return response(
        {"candidates": [candidate_answer(bandit, one, call.engine.clock.now()) for one in bandit.shadows]}
    )


async def put_candidate(call: Call) -> Response:
    """Add a candidate, which learns from the same rewards and never decides. Repeating it is no error."""
    try:
        name = bandit_name(call.rest)
    except ValueError as error:
        raise Invalid(f"path.candidate: {error}") from None
    bandit, settings = call.bandit, (await parse(call, CandidateRequest)).model_dump()
    reward_range = settings.pop("reward_range")
    candidate, is_new = await call.engine.candidates.put(bandit, name, settings, reward_range)
    bandit.about()
    return response(candidate_answer(bandit, candidate, call.engine.clock.now()), 201 if is_new else 200)


async def show_candidate(call: Call) -> Response:
    """Show a candidate."""
    bandit = call.bandit
    candidate = call.engine.candidates.get(bandit, call.rest)
    bandit.about()
    return response(candidate_answer(bandit, candidate, call.engine.clock.now()))


async def remove_candidate(call: Call) -> Response:
    """Delete a candidate and all it has learned."""
    await call.engine.candidates.remove(call.bandit, call.rest)
    return response({"status": "deleted"})


async def promote_candidate(call: Call) -> Response:
    """Let the policy of a candidate decide from now on."""
    bandit, asked = call.bandit, await parse(call, PromoteRequest)
    await call.engine.candidates.promote(bandit, call.rest, asked.keep)
    return response(bandit_answer(bandit))
