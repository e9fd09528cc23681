"""What mkdocs calls while it builds: the README stands at the root, and its links are made those of the site."""

import re
from pathlib import Path


def on_page_markdown(markdown, page, **_):
    """Show the README as the page readme.md; links to files that are no pages become plain text."""
    if page.file.src_uri != "readme.md":
        return markdown
    text = (Path(__file__).parents[1] / "README.md").read_text()
    text = re.sub(r"\[(\w+)\]\((?:CITATION\.cff|LICENSE)\)", r"\1", text)
    return text.replace("](docs/", "](").replace("](CONTRIBUTING.md)", "](contributing.md)")
