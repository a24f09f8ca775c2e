"""A worker that judges candidates: a process of its own with one BLAS thread, started by the pool."""

from threadpoolctl import threadpool_limits

from sketchbandit.processes import Tell, serve
from sketchbandit.simulation.judging import Candidate, judge


def handle(task: str, tell: Tell) -> dict[str, object]:
    """Judge a candidate, and write down what came of it."""
    judge(Candidate.from_json(task), lambda done: tell({"decisions": done}))
    return {}


if __name__ == "__main__":
    threadpool_limits(1)
    serve(handle)
