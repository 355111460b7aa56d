#!/usr/bin/env python3
"""Asks a folder of exported dumps: fleet/ask.py FOLDER [QUERY ...] [--json]

Runs the queries of fleet/queries (all of them when none is named) in DuckDB (pip install duckdb).
"""
import argparse
import json
from pathlib import Path

import duckdb

QUERIES = Path(__file__).resolve().parent / "queries"
TABLES = ("dumps", "classes", "leaks", "sites")


def connect(folder):
    db = duckdb.connect()
    for table in TABLES:
        files = (Path(folder) / table / "*.parquet").as_posix().replace("'", "''")
        db.execute(f"CREATE VIEW {table} AS SELECT * FROM read_parquet('{files}')")
    return db


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("folder")
    parser.add_argument("query", nargs="*", help=", ".join(sorted(p.stem for p in QUERIES.glob("*.sql"))))
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args()
    db = connect(args.folder)
    answers = {}
    for name in args.query or sorted(p.stem for p in QUERIES.glob("*.sql")):
        found = db.execute((QUERIES / f"{name}.sql").read_text())
        columns = [c[0] for c in found.description]
        answers[name] = [dict(zip(columns, row)) for row in found.fetchall()]
    if args.json:
        print(json.dumps(answers, default=str, indent=1))
        return
    for name, rows in answers.items():
        print(f"\n== {name.replace('_', ' ')} ({len(rows)} rows)")
        for row in rows[:20]:
            print("  " + "  ".join(f"{k}={v}" for k, v in row.items()))


if __name__ == "__main__":
    main()
