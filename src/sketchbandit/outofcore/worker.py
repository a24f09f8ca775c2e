"""A worker that reads shards: a process of its own with one BLAS thread, started by the pool."""

from sketchbandit.outofcore.job import Shard
from sketchbandit.outofcore.sources import open_source
from sketchbandit.processes import Tell, serve

_TOLD_EVERY = 20_000_000  # numbers read


def handle(task: str, tell: Tell) -> dict[str, object]:
    """Read a shard and write down what came of it."""
    shard = Shard.from_json(task)
    bulk = shard.plan.reader()
    untold = 0

    def count(rows: int) -> None:
        nonlocal untold
        untold += rows
        if untold * shard.plan.dim >= _TOLD_EVERY:
            tell({"rows": untold})
            untold = 0

    for piece in shard.pieces:
        piece.check_unchanged()
        source = open_source(piece.source, shard.plan.header)
        source.leave_out(shard.plan.drop)
        source.read_into(bulk.update, piece.start, piece.stop, count)
        piece.check_unchanged()
    tell({"rows": untold})
    shard.write(bulk)
    return {"rows": bulk.count}


if __name__ == "__main__":
    serve(handle)
