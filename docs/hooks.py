"""What mkdocs calls while it builds: files of the root become pages, and their links those of the site."""

import re
from pathlib import Path

AT_THE_ROOT = {"readme.md": "README.md", "changelog.md": "CHANGELOG.md"}


def on_page_markdown(markdown, page, **_):
    """Show a file of the root as a page of the site; links to files that are no pages become plain text."""
    if page.file.src_uri not in AT_THE_ROOT:
        return markdown
    text = (Path(__file__).parents[1] / AT_THE_ROOT[page.file.src_uri]).read_text()
    text = re.sub(r"\[(\w+)\]\((?:CITATION\.cff|LICENSE)\)", r"\1", text)
    return text.replace("](docs/", "](").replace("](CONTRIBUTING.md)", "](contributing.md)")
