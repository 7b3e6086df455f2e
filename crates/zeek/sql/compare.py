"""Runs the queries of `lastbyte zeek --sql` and compares what they count with the document: see scripts/zeek-sql."""

import json
import pathlib
import sys

import datafusion


def queries(text):
    """Each query, by the name in the remark before it."""
    name, lines = None, []
    for line in text.splitlines():
        if line.startswith("-- "):
            name = line[3:]
        elif line:
            lines.append(line)
            if line.endswith(";"):
                yield name, "\n".join(lines).rstrip(";")
                lines = []


folder = pathlib.Path(sys.argv[1])
document = json.loads((folder / "document.json").read_text())
context = datafusion.SessionContext()
context.register_parquet("connections", str(folder / "connections"))
counted = {
    name: context.sql(query).to_pylist()
    for name, query in queries((folder / "counts.sql").read_text())
}

expected = {
    "joined": [{"joined": document["joined"]}],
    "tls": [
        {"version": version, **{key: counts[key] for key in ("rows", "established", "resumed")}}
        for version, counts in sorted(document["tls"].items())
    ],
    "quic": [{key: document["quic"][key] for key in ("rows", "resumed")}],
    "classes": [
        {"class": name, "quic": carrier == "quic", "handshakes": of["handshakes"], "resumed": of["resumed"]}
        for name, carriers in sorted(document["classes"].items())
        for carrier, of in sorted(carriers.items(), key=lambda pair: pair[0] == "quic")
        if of["handshakes"] > 0
    ],
    "bytes_per_connection": [
        {"class": name, "handshake": kind, "connections": of["connections"]}
        for name, kinds in sorted(document["bytes_per_connection"].items())
        for kind, of in sorted(kinds.items())
        if of["connections"] > 0
    ],
}
for name, rows in expected.items():
    if counted[name] != rows:
        sys.exit(f"{name}: SQL counts {counted[name]}, lastbyte {rows}")
print(f"{', '.join(expected)}: the same in SQL, of {document['joined']} joined connections")
