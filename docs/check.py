"""Check a built site without a network: every link and anchor within it leads somewhere, nothing is asked of another host, no nbdev directive and no dollar of a formula is visible, and it is not too large.

usage: python docs/check.py _docs
"""

import re, sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

LIMIT = 40e6  # bytes


class Page(HTMLParser):
    "What a page points to, what it fetches, and its anchors."

    def __init__(self, text: str):
        super().__init__()
        self.links, self.fetched, self.anchors = [], [], {""}
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        a = dict(attrs)
        self.anchors |= {a[k] for k in ("id", "name") if a.get(k)}
        if tag == "a" and a.get("href"):
            self.links.append(a["href"])
        if tag in ("img", "script", "iframe", "source", "audio", "video", "embed") and a.get("src"):
            self.fetched.append(a["src"])
        if (
            tag == "link"
            and a.get("href")
            and a.get("rel")
            not in ("canonical", "next", "prev", "search", "index", "author", "copyright")
        ):
            self.fetched.append(a["href"])


def problems(site: Path) -> list[str]:
    texts = {p.resolve(): p.read_text() for p in site.rglob("*.html")}
    pages = {p: Page(t) for p, t in texts.items()}
    found = []
    for path, page in pages.items():
        name = path.relative_to(site.resolve())
        for url in page.links + page.fetched:
            parts = urlsplit(url)
            if parts.scheme or parts.netloc:
                if url in page.fetched and parts.scheme != "data":
                    found.append(f"{name} fetches {url}")
                continue
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            if not target.exists():
                found.append(f"{name}: {url} leads nowhere")
            elif (
                parts.fragment
                and target in pages
                and unquote(parts.fragment) not in pages[target].anchors
            ):
                found.append(f"{name}: {url} has no such anchor")
        text = re.sub(r"<[^>]+>", "", texts[path])
        if m := re.search(r"(?m)^\s*#\| ?\w+.*", text):
            found.append(f"{name} shows a directive of nbdev: {m[0].strip()}")
        prose = re.sub(
            r"<[^>]+>", "", re.sub(r"(?s)<(pre|code|script|style)\b.*?</\1>", "", texts[path])
        )
        if m := re.search(r".{0,40}\$.{0,40}", prose):
            found.append(f"{name} shows a dollar, so a formula is not read as one: {m[0].strip()}")
    for style in site.rglob("*.css"):
        found += [
            f"{style.relative_to(site)} fetches {u}"
            for u in re.findall(
                r"""(?:url\(|@import )["']?((?:https?:)?//[^"')]+)""", style.read_text()
            )
        ]
    size = sum(p.stat().st_size for p in site.rglob("*") if p.is_file())
    if size > LIMIT:
        found.append(f"the site has {size / 1e6:.0f} MB, more than {LIMIT / 1e6:.0f}")
    print(
        f"{len(pages)} pages, {sum(len(p.links) for p in pages.values())} links, {size / 1e6:.1f} MB"
    )
    return found


if __name__ == "__main__":
    if found := problems(Path(sys.argv[1])):
        print("\n".join(found))
        sys.exit(f"{len(found)} problems")
