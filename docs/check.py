"""Check the documentation: links, names of tests, tutorials against their scripts; with --site, the built pages.

- `links`: every relative link and picture leads to a file, and its anchor to a heading.
- `tutorials`: every Python block of a tutorial is a piece of the script that it names first, in order.
- `promises`: every test that a page names exists, in the file that it names.
- `built`: in the built site, every local address leads to one of its files, and nothing is loaded from a network.
"""

import argparse
import re
import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / name for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md")] + sorted(
    [*(ROOT / "docs").rglob("*.md"), *(ROOT / "studies").rglob("*.md")]
)


def without_code(text):
    """The text without code blocks and code spans."""
    return re.sub(r"`[^`\n]*`", "", re.sub(r"^```.*?^```", "", text, flags=re.DOTALL | re.MULTILINE))


def anchors(path):
    """The anchors that are made from a page's headings."""
    headings = re.findall(
        r"^#+ +(.*)$", re.sub(r"^```.*?^```", "", path.read_text(), flags=re.DOTALL | re.MULTILINE), re.M
    )
    return {re.sub(r"[-\s]+", "-", re.sub(r"[^\w\s-]", "", heading).strip().lower()) for heading in headings}


def links():
    """Yield the relative links that lead nowhere."""
    for page in PAGES:
        for target in re.findall(r"!?\[[^\]]*\]\(([^)\s]+)\)", without_code(page.read_text())):
            parts = urlsplit(target)
            if parts.scheme:
                if parts.scheme != "https":
                    yield f"{page.relative_to(ROOT)}: {target} is not https"
                continue
            path = (page.parent / unquote(parts.path)).resolve() if parts.path else page
            if not path.exists():
                yield f"{page.relative_to(ROOT)}: {target} does not exist"
            elif parts.fragment and path.suffix == ".md" and parts.fragment not in anchors(path):
                yield f"{page.relative_to(ROOT)}: {target} has no such heading"


def lines_of(code):
    """The lines of some code, without indentation or empty lines."""
    return [line.strip() for line in code.splitlines() if line.strip()]


def tutorials():
    """Yield the Python blocks of a tutorial that are not pieces of its script, in order."""
    for page in sorted((ROOT / "docs" / "tutorials").glob("*.md")):
        text, shown = page.read_text(), page.relative_to(ROOT)
        script = re.search(r"examples/\w+\.py", text)
        blocks = re.findall(r"^```python\n(.*?)^```", text, flags=re.DOTALL | re.MULTILINE)
        if not script or not blocks:
            yield f"{shown} names no script, or has no Python"
            continue
        held = lines_of((ROOT / script[0]).read_text())
        start = 0
        for block in blocks:
            wanted = lines_of(block)
            place = next((i for i in range(start, len(held)) if held[i : i + len(wanted)] == wanted), None)
            if place is None:
                yield f"{shown}: this is not in {script[0]}, or not in this order:\n{block}"
            else:
                start = place + len(wanted)


def promises():
    """Yield the tests that a page names and that do not exist, or not in the file that it names."""
    files = {path.as_posix(): path.read_text() for path in (ROOT / "tests").rglob("test_*.py")}
    for page in PAGES:
        for file, name in sorted(set(re.findall(r"(?:([\w/]+\.py)::|\b)(test_\w+)(?=`)", page.read_text()))):
            place = f"/{file}" if file else ""
            if not any(f"def {name}(" in text for path, text in files.items() if path.endswith(place)):
                yield f"{page.relative_to(ROOT)}: there is no test {name}{f' in {file}' if file else ''}"


class Addresses(HTMLParser):
    """Collects what a page links to, what it loads, and its anchors."""

    def __init__(self):
        super().__init__()
        self.links, self.loaded, self.ids = set(), set(), set()

    def handle_starttag(self, tag, attributes):
        """Keep the addresses of a tag."""
        given = dict(attributes)
        self.ids |= {given[name] for name in ("id", "name") if given.get(name)}
        if tag == "a" and given.get("href"):
            self.links.add(given["href"])
        elif tag == "link" and given.get("rel") not in ("canonical", "prev", "next") and given.get("href"):
            self.loaded.add(given["href"])
        elif tag in ("script", "img", "iframe", "source") and given.get("src"):
            self.loaded.add(given["src"])


def built(site):
    """Yield the addresses of the built pages that lead nowhere, or load from a network."""
    pages = {path.resolve(): Addresses() for path in site.rglob("*.html")}
    for path, page in pages.items():
        page.feed(path.read_text())
    for path, page in pages.items():
        if path.name == "404.html":  # its addresses are those of a server's root
            continue
        shown = path.relative_to(site.resolve())
        yield from (
            f"{shown} loads {address}"
            for address in sorted(page.loaded)
            if urlsplit(address).scheme in ("http", "https")
        )
        for address in sorted(page.links | page.loaded):
            parts = urlsplit(address)
            if parts.scheme or address.startswith("//"):
                continue
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            target = target / "index.html" if target.is_dir() else target
            if not target.exists():
                yield f"{shown}: {address} does not exist"
            elif parts.fragment and target in pages and unquote(parts.fragment) not in pages[target].ids:
                yield f"{shown}: {address} has no such place"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--site", type=Path, help="the folder of the built site; without it the sources are checked")
    site = parser.parse_args().site
    found = [*built(site)] if site else [*links(), *tutorials(), *promises()]
    for problem in found:
        print(problem, file=sys.stderr)
    print(f"{len(found)} problems in {'the built site' if site else f'{len(PAGES)} pages'}")
    sys.exit(bool(found))


if __name__ == "__main__":
    main()
