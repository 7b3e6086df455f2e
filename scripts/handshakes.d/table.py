"""The table of docs/benchmarks/stacks.md, of what measure.py has measured:

    table.py CSV [PAGE]

It is printed, or put into PAGE, between two comments.
"""

import csv
import math
import pathlib
import re
import statistics
import sys
from typing import NamedTuple

BEGIN = "<!-- scripts/handshakes --write: what follows is measured -->\n"
END = "<!-- the end of what is measured -->\n"
COLUMNS = ["round", "stack", "version", "group", "chain", "mode", "client_ns", "server_ns", "other_ns"]
LOCK = pathlib.Path(__file__).parent / "rust" / "Cargo.lock"

# Programs by their names, in the order of the columns.
STACKS = {
    "openssl-3.5": "OpenSSL {version}",
    "openssl-3.6": "OpenSSL {version}",
    "openssl-4.0": "OpenSSL {version}",
    "rustls-openssl": "rustls {rustls} on OpenSSL {version}",
    "rustls-aws-lc": "rustls {rustls} on aws-lc-rs {aws-lc-rs}",
    "s2n-tls": "s2n-tls {s2n-tls} on aws-lc-rs {aws-lc-rs}",
    "go": "Go {version}",
}
# A stack, and the same one as a second program: nothing should be between them.
TWINS = ("openssl-3.6", "openssl-3.6-again")
# The program that should agree with `lastbyte calibrate`, whose cipher suite is another than in the table.
CALIBRATE = "calibrate"
CALIBRATED = "openssl-3.6-sha384"
CHAINS = {"ecdsa-p256": "ECDSA P-256", "ml-dsa-44": "ML-DSA-44", "ml-dsa-65": "ML-DSA-65", "ml-dsa-87": "ML-DSA-87"}


class Case(NamedTuple):
    group: str
    chain: str
    mode: str

    def arm(self):
        """As `lastbyte calibrate` takes it."""
        mode = {"full": "", "mutual": f"/mutual={self.chain}/client_intermediates=1", "resumed": "/resume=ticket"}
        return f"{self.group}/{self.chain}/intermediates=1/scts=0{mode[self.mode]}"


CASES = [
    Case("X25519", "ecdsa-p256", "full"),
    *(Case("X25519MLKEM768", chain, "full") for chain in CHAINS),
    Case("X25519", "ecdsa-p256", "mutual"),
    *(Case("X25519MLKEM768", chain, "mutual") for chain in CHAINS),
    Case("X25519", "ecdsa-p256", "resumed"),
    Case("X25519MLKEM768", "ml-dsa-65", "resumed"),
]


class Cell:
    """What a stack needs for a case: nanoseconds of the client and of the server, by round."""

    def __init__(self):
        self.rounds = {}
        self.other = 0
        self.own = 0

    def add(self, number, times, other):
        self.rounds.setdefault(number, []).append(times)
        self.own += sum(times)
        self.other += other

    def others_share(self):
        """What other threads need beside: both ends have their share of it."""
        return self.other / self.own

    def mean(self, end):
        every = [times[end] for batch in self.rounds.values() for times in batch]
        return statistics.fmean(every) * (1 + self.others_share())

    def error(self, end):
        """Half of the 95 % interval of the mean, as part of it, by what is independent: rounds."""
        means = [statistics.fmean(times[end] for times in batch) for batch in self.rounds.values()]
        # Student's t to 1 % from ten degrees of freedom on.
        t = 1.96 + 2.5 / (len(means) - 1)
        return t * statistics.stdev(means) / math.sqrt(len(means)) / statistics.fmean(means)

    def rate(self, end):
        return 1e9 / self.mean(end)


def differences(one, other, *modes):
    """How much longer one takes than the other, both ends of cases of these modes, of all if none is named."""
    cases = [case for case in CASES if case.mode in modes or not modes]
    values = [100 * (one[case].mean(end) / other[case].mean(end) - 1) for case in cases for end in [0, 1]]
    return f"{min(values):+.1f} to {max(values):+.1f} %, {statistics.fmean(values):+.1f} % on average".replace("-", "−")


def table(cells, versions):
    crates = dict(re.findall(r'name = "(.*)"\nversion = "(.*)"', LOCK.read_text()))
    stacks = {stack: title for stack, title in STACKS.items() if stack in cells}
    titles = [title.format(version=versions[stack], **crates) for stack, title in stacks.items()]
    text = f"| key exchange | chain | | {' | '.join(titles)} |\n|---|---|---|{'--:|' * len(titles)}\n"
    for case in CASES:
        rates = [f"{cells[stack][case].rate(0):.0f}, {cells[stack][case].rate(1):.0f}" for stack in stacks]
        text += f"| {case.group} | {CHAINS[case.chain]} | {case.mode} | {' | '.join(rates)} |\n"
    return text


def trust(cells, versions):
    """How far the numbers can be trusted."""
    some = next(iter(cells[TWINS[0]].values()))
    count = sum(map(len, some.rounds.values()))
    errors = [100 * cells[stack][case].error(end) for stack in STACKS for case in CASES for end in [0, 1]]
    collector = [100 * cell.others_share() for cell in cells["go"].values()]
    return (
        f"- n = {count} a cell, in {len(some.rounds)} rounds. 95 % intervals of the means are ±{statistics.median(errors):.1f} % at the median "
        f"and ±{max(errors):.1f} % at most.\n"
        f"- The same program twice, as if it were two stacks: {differences(cells[TWINS[1]], cells[TWINS[0]])}.\n"
        f"- What `lastbyte calibrate` has of OpenSSL {versions[CALIBRATE]}, against times of OpenSSL {versions[CALIBRATED]} with that cipher suite: "
        f"{differences(cells[CALIBRATE], cells[CALIBRATED], 'full', 'resumed')}; "
        f"mutual, {differences(cells[CALIBRATE], cells[CALIBRATED], 'mutual')}.\n"
        f"- Go's collector and scheduler need {min(collector):.1f} to {max(collector):.1f} % on other threads than the handshake's, which are in its cells.\n"
    )


def main(measured, page=None):
    cells, versions = {}, {}
    with open(measured, newline="") as file:
        for row in csv.DictReader(file):
            versions[row["stack"]] = row["version"]
            cell = cells.setdefault(row["stack"], {}).setdefault(Case(row["group"], row["chain"], row["mode"]), Cell())
            cell.add(int(row["round"]), [int(row["client_ns"]), int(row["server_ns"])], int(row["other_ns"]))
    text = table(cells, versions) + "\n" + trust(cells, versions)
    if page is None:
        print(text, end="")
        return
    path = pathlib.Path(page)
    before, _, rest = path.read_text().partition(BEGIN)
    _, end, after = rest.partition(END)
    if not end:
        sys.exit(f"error: {page} has not both comments that the table stands between")
    path.write_text(f"{before}{BEGIN}\n{text}\n{END}{after}")


if __name__ == "__main__":
    main(*sys.argv[1:])
