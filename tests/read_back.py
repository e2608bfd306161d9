"""What a page or a notebook holds, read back."""

import json
import re


def data_of(markup):
    """The data of a figure: controls, start, texts and slots."""
    return json.loads(re.search(r"data = (\{.*?\});\n", markup).group(1))


def recorded(notebook):
    """The numbers that a notebook has glued: for each name, its cell's place and its text."""
    found = {}
    for place, cell in enumerate(notebook.cells):
        for output in cell.get("outputs", []):
            if name := output.get("metadata", {}).get("scrapbook", {}).get("name"):
                text = output["data"].get("application/papermill.record/text/plain")
                found[name] = place, text
    return found
