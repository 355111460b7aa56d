#!/usr/bin/env python3
"""Asks a running jhat (of JDK 8) the queries of a file, and writes how many rows each has and their digest.

    jhat -port 7777 HeapDumpSample.hprof
    bench/jhat.py http://localhost:7777 crates/heap-query/tests/data/jhat_answers.txt

Each line is: rows, digest, query. Lists are taken apart into rows and literals of objects into columns, as
`tenure query` shows them; a link to an object is its address. The digest is FNV-1a of the sorted rows, a line each.
"""

import html
import re
import sys
import urllib.parse
import urllib.request


def parts(text):
    """What stands between the brackets of a list or literal, each part by itself."""
    found, depth, begin = [], 0, 0
    for at, char in enumerate(text):
        depth += (char in "[{") - (char in "]}")
        if depth == 0 and text.startswith(", ", at):
            found.append(text[begin:at])
            begin = at + 2
    return [part for part in [*found, text[begin:].rstrip(", ")] if part.strip()]


def rows_of(cell):
    """The rows that a cell of jhat's table stands for."""
    if cell.startswith("[ ") and cell.endswith(" ]"):
        return [row for part in parts(cell[2:-2]) for row in [columns(part.strip())]]
    return [columns(cell)] if cell != "null" else []


def columns(cell):
    if cell.startswith("{ ") and cell.endswith(" }"):
        return ", ".join(number(part.split(":", 1)[1]) for part in parts(cell[2:-2]))
    return number(cell)


def number(text):
    return re.sub(r"^(-?\d+)\.0$", r"\1", text.strip())


def ask(server, query):
    url = f"{server}/oql/?" + urllib.parse.urlencode({"query": query})
    page = urllib.request.urlopen(url, timeout=300).read().decode("utf-8", "replace")
    page = page[page.rfind("</form>"):]
    if "<table" not in page:
        sys.exit(f"{query}\n{re.sub('<[^>]*>', '', page).strip()[:500]}")
    cells = re.findall(r"<tr><td>\n(.*?)\n?</td></tr>", page, re.S)
    cells = [re.sub(r"<a href='/(?:object|class)/(0x[0-9a-f]+)'>.*?</a>", r"\1", cell, flags=re.S) for cell in cells]
    return [row for cell in cells for row in rows_of(html.unescape(cell).strip())]


def digest(rows):
    value = 0xCBF29CE484222325
    for byte in "".join(row + "\n" for row in sorted(rows)).encode():
        value = (value ^ byte) * 0x100000001B3 & (1 << 64) - 1
    return f"{value:016x}"


def main(server, path):
    with open(path, encoding="utf-8") as file:
        lines = file.read().splitlines()
    for at, line in enumerate(lines):
        if line and not line.startswith("#"):
            query = line.split("\t")[-1]
            rows = ask(server, query)
            lines[at] = f"{len(rows)}\t{digest(rows)}\t{query}"
            print(lines[at], rows[:2])
    with open(path, "w", encoding="utf-8") as file:
        file.write("\n".join(lines) + "\n")


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    main(*sys.argv[1:])
