"""Profiles of the property tests: repeatable by default, many random examples for a soak."""

import gc
import os
import shutil
import signal
import tempfile
from collections.abc import Iterator

import pytest
from hypothesis import settings
from threadpoolctl import threadpool_limits

from sketchbandit.features import features
from sketchbandit.kernels import choose_again, kernels
from tests.in_process import in_process

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # so a shell starts what runs in the background
    signal.signal(signal.SIGINT, signal.default_int_handler)  # some tests interrupt processes they start
MEMORY = "/dev/shm"  # noqa: S108  (where tempfile and pytest make folders of their own)
if "TMPDIR" not in os.environ and os.access(MEMORY, os.W_OK) and shutil.disk_usage(MEMORY).free > 4 << 30:
    os.environ["TMPDIR"] = tempfile.tempdir = MEMORY  # journals sync every commit: milliseconds on a disk
threadpool_limits(1)  # as the commands do: how many threads share a product decides its last bit

settings.register_profile("default", max_examples=25, derandomize=True, deadline=None)
settings.register_profile("soak", max_examples=1000, deadline=None)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "default"))


def pytest_collection_finish() -> None:
    """Keep the thousands of tests themselves out of garbage collections: each would look at all of them."""
    gc.collect()
    gc.freeze()


@pytest.fixture(params=["numpy", "compiled"])
def backend(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """Run a test twice: with numpy alone, and with the compiled loops."""
    monkeypatch.setenv("SKETCHBANDIT_COMPILED", "1" if request.param == "compiled" else "0")
    choose_again()
    assert (kernels() is not None) == (request.param == "compiled")
    yield request.param
    choose_again()


@pytest.fixture
def here() -> Iterator[None]:
    """What workers do is done in this process."""
    with in_process():
        yield


@pytest.fixture
def short_warm_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """A warm-up of few requests, for what does not depend on their number."""
    monkeypatch.setattr(features, "WARM_UP", 30)
    monkeypatch.setattr(features, "MOST_REWARDS", 60)
