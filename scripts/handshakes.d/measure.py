"""Has programs shake hands with themselves, by turns, for each key exchange, chain and mode:

    measure.py CHAINS HANDSHAKES LASTBYTE PROGRAM... >CSV

CHAINS is the folder of chains that programs are given, HANDSHAKES is how often each does each. A program's name is that of a stack of table.py. It says its
version, and answers each line `GROUP CHAIN MODE COUNT` with nanoseconds of CPU time: those of other threads than the one that shakes hands, and then
`CLIENT,SERVER` of each handshake. What LASTBYTE's `calibrate` has of OpenSSL is measured thrice in between. The CSV has a line for each handshake:
round, stack, version, group, chain, mode, client's and server's nanoseconds, and its share of other threads'.
"""

import csv
import json
import pathlib
import subprocess
import sys

import table

# Of a stack in a row, before it is another's turn.
BATCH = 20
# With those that warm caches and do not count.
WARM_UP_ROUNDS = 1
CALIBRATIONS = 3


class Program:
    def __init__(self, path, chains):
        self.stack = path.name
        self.process = subprocess.Popen([path, chains], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.version = self.line()

    def line(self):
        line = self.process.stdout.readline()
        if not line:
            sys.exit(f"error: {self.stack} has ended: what it said is above")
        return line.strip()

    def measure(self, case, count):
        self.process.stdin.write(f"{case.group} {case.chain} {case.mode} {count}\n")
        self.process.stdin.flush()
        other, *times = self.line().split()
        return [[*pair.split(","), int(other) // count] for pair in times]


def calibrate(lastbyte, count):
    """Of the same cases, as `lastbyte calibrate` has them."""
    arms = [case.arm() for case in table.CASES]
    command = [lastbyte, "calibrate", "--format", "json", "--handshakes", str(count), *arms]
    done = subprocess.run(command, stdout=subprocess.PIPE, check=False)
    if done.returncode != 0:
        sys.exit(f"error: {lastbyte} calibrate has failed")
    for case, arm in zip(table.CASES, json.loads(done.stdout)["arms"]):
        rates = [arm[f"{end}_handshakes_per_second"] for end in ["client", "server"]]
        yield case, arm["versions"]["openssl"].split()[1], [round(1e9 / rate) for rate in rates]


def main(chains, handshakes, lastbyte, *paths):
    programs = [Program(pathlib.Path(path), chains) for path in paths]
    rounds = WARM_UP_ROUNDS + max(int(handshakes) // BATCH, 2)
    calibrated = {WARM_UP_ROUNDS + part * (rounds - 1) // CALIBRATIONS for part in range(CALIBRATIONS)}
    out = csv.writer(sys.stdout, lineterminator="\n")
    out.writerow(table.COLUMNS)
    for number in range(rounds):
        for case in table.CASES:
            # Each comes after each other as often as before it.
            for program in programs[:: 1 if number % 2 == 0 else -1]:
                for times in program.measure(case, BATCH):
                    if number >= WARM_UP_ROUNDS:
                        out.writerow([number, program.stack, program.version, *case, *times])
        if number in calibrated:
            for case, version, times in calibrate(lastbyte, max(int(handshakes) // CALIBRATIONS, 1)):
                out.writerow([number, table.CALIBRATE, version, *case, *times, 0])
        print(f"round {number} of {rounds - 1}", file=sys.stderr, end="\r", flush=True)
    print(file=sys.stderr)
    for program in programs:
        program.process.stdin.close()
        program.process.wait()


if __name__ == "__main__":
    main(*sys.argv[1:])
