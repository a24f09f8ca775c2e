"""What search shows first: guides before the reference, and logs of results after both."""

from typing import Any

BOOSTS = {"reference/": 0.5, "changelog.md": 0.2, "reproduction-claims.md": 0.2, "bakeoff.md": 0.5}


def on_page_markdown(markdown: str, *, page: Any, **_: Any) -> str:
    """Tell the search how much the words of a page count; nothing where the page itself has said so."""
    for path, boost in BOOSTS.items():
        if page.file.src_uri.startswith(path):
            page.meta["search"] = {"boost": boost, **page.meta.get("search", {})}
    return markdown
