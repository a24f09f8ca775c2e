"""A worker that reads parts: a process of its own with one BLAS thread, started by the pool."""

from sketchbandit.outofcore.parts import Part
from sketchbandit.outofcore.reading import read_into
from sketchbandit.outofcore.sources import open_source
from sketchbandit.processes import Tell, serve

_TOLD_EVERY = 20_000_000  # numbers read


def handle(task: str, tell: Tell) -> dict[str, object]:
    """Read a part and write down what came of it."""
    part = Part.from_json(task)
    bulk = part.plan.reader()
    untold = 0

    def count(rows: int) -> None:
        nonlocal untold
        untold += rows
        if untold * part.plan.dim >= _TOLD_EVERY:
            tell({"rows": untold})
            untold = 0

    for piece in part.pieces:
        piece.check_unchanged()
        source = open_source(piece.source, part.plan.header)
        source.leave_out(part.plan.drop)
        read_into(bulk, source, piece.start, piece.stop, count)
        piece.check_unchanged()
    tell({"rows": untold})
    part.write(bulk)
    return {"rows": bulk.count}


if __name__ == "__main__":
    serve(handle)
