"""A worker that performs runs: a process of its own with one BLAS thread, started by the pool."""

from threadpoolctl import threadpool_limits

from sketchbandit.processes import Tell, serve
from sketchbandit.simulation.runs import Run, perform


def handle(task: str, tell: Tell) -> dict[str, object]:
    """The rows of a run."""
    del tell
    return {"rows": perform(Run.from_json(task))}


if __name__ == "__main__":
    threadpool_limits(1)
    serve(handle)
