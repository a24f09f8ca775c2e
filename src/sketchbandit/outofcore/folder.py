"""The folder beside the result, where what is finished is kept until all is."""

import json
from contextlib import suppress
from pathlib import Path
from typing import Any, Self

from sketchbandit import files
from sketchbandit.errors import FileError, InputError
from sketchbandit.locking import lock_folder

MANIFEST = "manifest.json"
_OURS = (MANIFEST, "[0-9][0-9][0-9][0-9][0-9].safetensors", ".*.safetensors.*.tmp", f".{MANIFEST}.*.tmp")


class PartsFolder:
    """``NAME.parts`` beside a result called NAME, locked between ``with`` and its end.

    Only what we wrote is ever deleted in it.
    """

    def __init__(self, target: Path) -> None:
        self.path = target.with_name(f"{target.name}.parts")

    def __enter__(self) -> Self:
        self.path.mkdir(exist_ok=True)
        try:
            self._lock = lock_folder(self.path)
        except OSError as error:
            raise InputError(f"cannot write to {self.path}: {error.strerror}") from error
        return self

    def __exit__(self, kind: object, error: object, trace: object) -> None:
        if error is not None and not any(self.path.glob("*.safetensors")):
            self.remove()  # nothing is finished: nothing to go on with
        self._lock.close()

    def begin(self, manifest: dict[str, Any], *, resume: bool, fresh: bool) -> None:
        """Go on with what is there if it is of the same job, or begin with nothing."""
        if fresh:
            self._delete_ours()
        before = self._manifest()
        if before is None:
            strange = [path.name for path in self.path.iterdir() if path.name != ".lock"]
            if strange:
                raise InputError(f"{self.path} holds {strange[0]}, which is not of a job; move it away")
            files.replace_file(self.path / MANIFEST, json.dumps(manifest, indent=1).encode())
            return
        if not resume:
            raise self._interrupted()
        for name, value in manifest.items():
            if before.get(name) != value:
                raise InputError(
                    f"{self.path} is of a job with {name} {before.get(name)!r}, and this one has {value!r}: "
                    "start anew with --fresh"
                )

    def check_absent(self) -> None:
        """Refuse to write the result if parts of an interrupted job lie here."""
        if self._manifest() is not None:
            raise self._interrupted()

    def remove(self) -> None:
        """The result is written: nothing of the job is needed any more."""
        self._delete_ours()
        (self.path / ".lock").unlink(missing_ok=True)
        with suppress(OSError):  # something that is not ours has come into it
            self.path.rmdir()

    def _delete_ours(self) -> None:
        for pattern in _OURS:
            for path in self.path.glob(pattern):
                path.unlink()

    def _manifest(self) -> dict[str, Any] | None:
        path = self.path / MANIFEST
        if not path.is_file():
            return None
        try:
            found: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        except ValueError as error:
            raise FileError(f"{path} is damaged; throw the job away with --fresh") from error
        return found

    def _interrupted(self) -> InputError:
        return InputError(
            f"{self.path} holds the parts of an interrupted job: go on with --resume, or throw them away "
            "with --fresh"
        )
