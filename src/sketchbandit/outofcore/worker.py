"""A worker that reads parts: a process of its own with one BLAS thread, started by the pool."""

from pathlib import Path

from sketchbandit import files
from sketchbandit.outofcore.parts import Part
from sketchbandit.outofcore.reading import read_into
from sketchbandit.outofcore.sources import open_source
from sketchbandit.processes import Tell, serve
from sketchbandit.sketch import Bulk

KIND = "part-of-a-sketch"
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

    read_into(bulk, open_source(part.source), part.start, part.stop, count)
    tell({"rows": untold})
    scalars, arrays = bulk.dump()
    files.write(Path(part.out), KIND, {"key": part.key, "bulk": scalars}, arrays)
    return {"rows": bulk.count}


def read_part(part: Part) -> Bulk | None:
    """What a worker wrote for the part; None if that is not there, or of another part."""
    path = Path(part.out)
    if not path.is_file():
        return None
    contents = files.read(path)
    if contents.kind != KIND or contents.scalars["key"] != part.key:
        return None
    return Bulk.undump(contents.scalars["bulk"], contents.arrays)


if __name__ == "__main__":
    serve(handle)
