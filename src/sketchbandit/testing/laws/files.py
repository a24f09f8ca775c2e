"""Laws about files: what is saved comes back complete, or not at all."""

from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from safetensors.numpy import save as to_safetensors

from sketchbandit.errors import FileError
from sketchbandit.testing.laws.base import Laws, inherited
from sketchbandit.testing.oracles import assert_identical
from sketchbandit.testing.streams import Stream, make_rows, streams


class FileLaws(Laws):
    """Loading and continuing equals never having stopped, and an incomplete file is refused."""

    @inherited
    @given(stream=streams(), cut=st.integers(0, 50))
    def test_load_then_continue(self, stream: Stream, cut: int) -> None:
        """A sketch that is saved and loaded in mid-stream ends equal, to the bit, to one that was not."""
        unbroken = self.make(stream.dim, stream.size)
        unbroken.update(stream.rows[:cut])
        with TemporaryDirectory() as folder:
            path = Path(folder) / "sketch.safetensors"
            unbroken.save(path)
            resumed = self.load(path)
            assert [p.name for p in Path(folder).iterdir()] == [path.name]
        assert type(resumed) is type(unbroken)
        assert_identical(resumed, unbroken)
        for row in stream.rows[cut:]:
            unbroken.update(row)
            resumed.update(row)
        assert_identical(resumed, unbroken)
        assert np.array_equal(resumed.rows, unbroken.rows)

    def test_saving_replaces_the_old_file(self, tmp_path: Path) -> None:
        """Saving twice to one path leaves the second sketch."""
        sketch = self.make(5, 3)
        sketch.save(tmp_path / "s")
        sketch.update(np.ones((4, 5)))
        sketch.save(tmp_path / "s")
        assert self.load(tmp_path / "s").count == 4

    def test_damaged_files_are_refused(self, tmp_path: Path) -> None:
        """A file cut anywhere, or with any byte changed, raises FileError."""
        sketch = self.make(4, 2)
        sketch.update(make_rows("gaussian", 9, 4, 0))
        sketch.save(tmp_path / "whole")
        content = (tmp_path / "whole").read_bytes()
        random = np.random.default_rng(0)
        for cut in {0, 1, 8, len(content) - 1, *random.integers(0, len(content), 20).tolist()}:
            self._assert_refused(tmp_path, content[:cut])
        for at in random.integers(0, len(content), 60).tolist():
            changed = bytearray(content)
            changed[at] ^= 1 << int(random.integers(0, 7))
            self._assert_refused(tmp_path, bytes(changed))

    def test_foreign_and_newer_files_are_refused(self, tmp_path: Path) -> None:
        """A file of another program, of a newer format or of an unknown kind raises FileError."""
        ours = {"format": "sketchbandit", "format_version": "2", "kind": "no-such-kind"}
        others = [{**ours, "format_version": version} for version in ("1", "99", "x")]
        for metadata in (None, {"format": "pt"}, *others, ours):
            self._assert_refused(tmp_path, to_safetensors({"rows": np.zeros((1, 3))}, metadata=metadata))
        with pytest.raises(FileNotFoundError):
            self.load(tmp_path / "absent")

    def _assert_refused(self, folder: Path, content: bytes) -> None:
        (folder / "refused").write_bytes(content)
        with pytest.raises(FileError):
            self.load(folder / "refused")
