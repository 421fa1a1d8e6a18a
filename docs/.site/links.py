# SPDX-License-Identifier: Apache-2.0
"""Links from the documents into the rest of the repository lead to it where it is published."""
import posixpath
import re

LINK = re.compile(r"(\]\()(?![a-z][a-z+.-]*:|#)([^)#\s]+)([^)\s]*\))")


def on_page_markdown(markdown, page, config, **_):
    here = posixpath.dirname(page.file.src_uri)

    def published(m):
        path = posixpath.normpath(posixpath.join("docs", here, m[2]))
        if path.startswith("docs/") and path.endswith((".md", ".png", ".svg")):
            return m[0]
        return f"{m[1]}{config.repo_url}/blob/main/{path}{m[3]}"

    return LINK.sub(published, markdown)
