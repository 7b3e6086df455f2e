"""The tables of docs/quic-stacks.md, of what `scripts/quic-stacks` has measured:

    table.py FOLDER SERVERS [PAGE]

SERVERS has commas between them. The tables are printed, or put into PAGE, between two comments.
"""

import json
import pathlib
import re
import sys

BEGIN = "<!-- scripts/quic-stacks --write: what follows is measured -->\n"
END = "<!-- the end of what is measured -->\n"
CLIENTS = ["lastbyte", "curl", "quic-go", "chromium"]
CHAINS = {"ecdsa-p256": "ECDSA P-256", "ml-dsa-44": "ML-DSA-44", "ml-dsa-65": "ML-DSA-65", "ml-dsa-87": "ML-DSA-87"}
NAMES = {"lastbyte": "quinn"}
RTT = 100e6


def ms(nanoseconds):
    return f"{nanoseconds / 1e6:.1f}"


def name(end):
    return NAMES.get(end, end)


def named(lost):
    """The server's third datagram is s3; what begins it tells what is in it."""
    return f"{lost['sender'][0]}{lost['number']}, {lost['carries'].split(',')[0]}"


def row(server, client, chain, losses):
    pair = f"| {name(server)} | {name(client)} | {CHAINS[chain]} "
    if losses["reason"]:
        return pair + f"| never | | | | | {losses['reason'].replace('|', ' ')} |\n"
    handshake = losses["handshake_ns"]
    factor = losses["amplification"]
    lost = losses["lost"]
    never = [one for one in lost if one["handshake_ns"] is None]
    others = [one for one in lost if one["handshake_ns"] is not None]
    most = max(others, key=lambda one: one["added_ns"])
    worst = f"+{ms(most['added_ns'])} ({named(most)})"
    gone = "; ".join(named(one) for one in never)
    if len(never) > 2:
        gone = f"{len(never)}, from {named(never[0])}"
    trips = f"{handshake / RTT:.2f}".rstrip("0").rstrip(".")
    return pair + f"| {ms(handshake)} | {trips} | {factor:.2f} | {len(lost)} | {worst} | {gone or 'none'} |\n"


def main(folder, servers, page=None):
    folder = pathlib.Path(folder)
    source = pathlib.Path(__file__).parents[2] / "crates/quic/src/lib.rs"
    [ours] = re.findall(r'VERSION: &str = "(.*)";', source.read_text())
    versions = {"quinn": ours}
    rows = []
    for server in servers.split(","):
        for client in CLIENTS:
            for chain in CHAINS:
                path = folder / f"{server}-{client}-{chain}.json"
                [losses] = json.loads(path.read_text())["losses"]
                versions.update(losses["programs"])
                rows.append(row(server, client, chain, losses))
    text = "".join(f"- {name}: {version}\n" for name, version in sorted(versions.items()))
    text += (
        "\n| server | client | chain | handshake, ms | round trips | factor | datagrams "
        "| the worst of those that are recovered from, ms | never recovered from |\n"
        "|---|---|---|---|---|---|---|---|---|\n"
    )
    text += "".join(rows)
    if page is None:
        print(text, end="")
        return
    path = pathlib.Path(page)
    before, _, rest = path.read_text().partition(BEGIN)
    _, end, after = rest.partition(END)
    if not end:
        sys.exit(f"error: {page} has not both comments that the tables stand between")
    path.write_text(f"{before}{BEGIN}\n{text}\n{END}{after}")


main(*sys.argv[1:])
