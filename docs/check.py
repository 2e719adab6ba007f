"""Check a built site without a network: usage, python docs/check.py _docs

Links and anchors within the site lead somewhere, nothing is fetched from another host, no
directive of nbdev and no dollar of a formula is visible, and the site is not too large."""

import re, sys
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

LIMIT = 40e6  # bytes
FETCHING = {"img", "script", "iframe", "source", "audio", "video", "embed"}  # by their `src`
NOT_FETCHED = {"canonical", "next", "prev", "search", "index", "author", "copyright"}  # `rel`s


class Page(HTMLParser):
    "What a page points to, what it fetches, and its anchors."

    def __init__(self, text: str):
        super().__init__()
        self.text = text
        self.links, self.fetched, self.anchors = [], [], {""}
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        a = dict(attrs)
        self.anchors |= {a[k] for k in ("id", "name") if a.get(k)}
        if tag == "a" and a.get("href"):
            self.links.append(a["href"])
        if tag in FETCHING and a.get("src"):
            self.fetched.append(a["src"])
        if tag == "link" and a.get("href") and a.get("rel") not in NOT_FETCHED:
            self.fetched.append(a["href"])

    def shown(self, without: str = "script|style") -> str:
        "Its text without some elements."
        return re.sub(rf"(?s)<({without})\b.*?</\1>|<[^>]+>", "", self.text)


def link_problem(url: str, path: Path, pages: dict[Path, Page]) -> str:
    "What is wrong with a link of the page at `path`; nothing if it leads somewhere."
    parts = urlsplit(url)
    if parts.scheme or parts.netloc:
        is_foreign = url in pages[path].fetched and parts.scheme != "data"
        return f" fetches {url}" if is_foreign else ""
    target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
    if not target.exists():
        return f": {url} leads nowhere"
    if parts.fragment and target in pages and unquote(parts.fragment) not in pages[target].anchors:
        return f": {url} has no such anchor"
    return ""


def page_problems(path: Path, pages: dict[Path, Page]) -> Iterator[str]:
    "What is wrong with the page at `path`."
    page = pages[path]
    yield from filter(None, (link_problem(url, path, pages) for url in page.links + page.fetched))
    if m := re.search(r"(?m)^\s*#\| ?\w+.*", page.shown()):
        yield f" shows a directive of nbdev: {m[0].strip()}"
    if m := re.search(r".{0,40}\$.{0,40}", page.shown("pre|code|script|style")):
        yield f" shows a dollar, so a formula is not read as one: {m[0].strip()}"


def problems(site: Path) -> list[str]:
    "All that is wrong with a site; prints how large the site is."
    pages = {p.resolve(): Page(p.read_text()) for p in site.rglob("*.html")}
    names = {path: path.relative_to(site.resolve()) for path in pages}
    found = [f"{names[path]}{p}" for path in pages for p in page_problems(path, pages)]
    fetching = r"""(?:url\(|@import )["']?((?:https?:)?//[^"')]+)"""
    for style in site.rglob("*.css"):
        found += [f"{style.name} fetches {url}" for url in re.findall(fetching, style.read_text())]
    own = [p for p in site.rglob("*") if p.is_file() and "see" not in p.parts]  # without a runtime
    size = sum(p.stat().st_size for p in own)
    found += [f"the site has {size / 1e6:.0f} MB, which is too much"] if size > LIMIT else []
    print(f"{len(pages)} pages, {size / 1e6:.1f} MB")
    return found


if __name__ == "__main__":
    sys.exit("\n".join(problems(Path(sys.argv[1]))) or None)
