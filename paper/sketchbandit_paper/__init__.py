"""The paper's experiments, as data, and what runs them. Needs the extra ``sketchbandit[experiments]``.

The verbs are those of the command line:

>>> from sketchbandit_paper import compare, report, report_readings, reproduce, tour, verify
"""

from typing import TYPE_CHECKING, Any

from sketchbandit.extras import how_to_install

if TYPE_CHECKING:
    from sketchbandit_paper.verbs import compare, report, report_readings, reproduce, tour, verify

__all__ = ["compare", "report", "report_readings", "reproduce", "tour", "verify"]


def __getattr__(name: str) -> Any:
    """The verbs, imported when asked for: workers need no figures."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    try:
        from sketchbandit_paper import verbs  # noqa: PLC0415
    except ModuleNotFoundError as error:
        hint = f"experiments need {error.name}: {how_to_install('experiments')}"
        raise ModuleNotFoundError(hint, name=error.name) from error
    return getattr(verbs, name)
