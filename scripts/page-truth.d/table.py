#!/usr/bin/env python3
"""Sets page loads in virtual time beside those in real time:

    table.py FOLDER

FOLDER is what scripts/page-truth has measured. A median in virtual time holds where it lies inside the range of both live series together, or within 3 % of their
median. Loads in real time that took more than 1.5 times the median of their series were disturbed by something else on the machine (those that took a round trip more did not take so
much): they are left out, and counted. Ends with 0 where enough of them hold, with 1 where not, and with 2 where something is not measured yet.
"""
import collections
import glob
import json
import os
import re
import statistics
import sys

METRICS = ["fcp", "lcp", "load"]
NEAR = 0.03
DISTURBED = 1.5
# Shares of all combinations that have to hold, and how many those are at least.
ENOUGH = {"fcp": 28 / 30, "load": 25 / 30}
LEAST = 30

Series = collections.namedtuple("Series", "median least most count")


def series(values):
    return Series(statistics.median(values), min(values), max(values), len(values)) if values else None


def without_disturbed(loads):
    """Loads in real time, without those that can't be taken for what they measure, and how many those are."""
    kept = collections.defaultdict(list)
    for key, values in loads.items():
        kept[key] = [value for value in values if value <= DISTURBED * statistics.median(values)]
    return kept, sum(len(loads[key]) - len(kept[key]) for key in loads)


def milliseconds(duration):
    return duration["secs"] * 1e3 + duration["nanos"] / 1e6


def of_lastbyte(folder, part):
    """Loads of a part: of each combination and metric, milliseconds."""
    loads = collections.defaultdict(list)
    for path in sorted(glob.glob(os.path.join(folder, part + "-*", "pages", "*.json"))):
        measure, arm = re.fullmatch(r"(.+)-cell-0-arm-\d+-(.+)\.json", os.path.basename(path)).groups()
        for row in json.load(open(path)):
            for metric in METRICS:
                if row["load"] and row["load"][metric]:
                    loads[f"{measure}-{arm}", metric].append(milliseconds(row["load"][metric]))
    return loads


def of_driver(folder):
    loads = collections.defaultdict(list)
    for path in sorted(glob.glob(os.path.join(folder, "driver", "*.json"))):
        for row in json.load(open(path)):
            for metric in METRICS:
                loads[os.path.basename(path).removesuffix(".json"), metric].append(row[metric])
    return loads


def apart(one, other):
    """How much later one median is than the other."""
    return one.median / other.median - 1


def holds(found, truth):
    return truth.least <= found.median <= truth.most or abs(apart(found, truth)) <= NEAR


def shown(one):
    return f"{one.median:6.0f} [{one.least:5.0f} - {one.most:5.0f}]" if one else "-"


def mean_error(pairs):
    return f"{100 * statistics.mean(abs(apart(*pair)) for pair in pairs):.1f} %" if pairs else "-"


def line(metric, what, pairs):
    """How many of these pairs of something found and the truth hold, and how far they are apart."""
    held = sum(holds(*pair) for pair in pairs)
    print(f"{metric:5} {what:38} {held:3} of {len(pairs):3}   mean error {mean_error(pairs)}")
    return held


def main():
    folder = sys.argv[1]
    (a, left_out_a), (b, left_out_b) = (without_disturbed(of_lastbyte(folder, part)) for part in ("live-a", "live-b"))
    driver, left_out_driver = without_disturbed(of_driver(folder))
    virtual = of_lastbyte(folder, "virtual")
    live = {key: series(a[key] + b[key]) for key in {*a, *b}}
    combinations = sorted({combination for combination, _ in [*live, *virtual, *driver]})
    width = max(map(len, combinations), default=0)
    print(f"{'ms':{width}}        {'live, both series':22}  {'driver':22}  {'virtual':22}  difference")
    misses = []
    for combination in combinations:
        for metric in METRICS:
            key = combination, metric
            truth, own, found = live.get(key), series(driver[key]), series(virtual[key])
            verdict = ""
            if truth and found:
                verdict = f"{100 * apart(found, truth):+6.1f} %  {'holds' if holds(found, truth) else 'misses'}"
                if not holds(found, truth):
                    misses.append(f"{combination} {metric}: {shown(found)} in virtual time, {shown(truth)} live")
            print(f"{combination:{width}}  {metric:4}  {shown(truth):22}  {shown(own):22}  {shown(found):22}  {verdict}".rstrip())

    print(f"\nleft out as disturbed, of all times: {left_out_a} of live-a, {left_out_b} of live-b, {left_out_driver} of the driver")
    print("\nhow many medians lie inside the range of what they are held against, or within 3 % of its median")
    enough = True
    for metric in METRICS:
        keys = [(combination, metric) for combination in combinations]
        found = [(series(virtual[key]), live[key]) for key in keys if virtual[key] and key in live]
        held = line(metric, "virtual, against both live series", found)
        enough = enough and held >= ENOUGH.get(metric, 0) * len(found)
        line(metric, "virtual, against live-a", [(series(virtual[key]), series(a[key])) for key in keys if virtual[key] and a[key]])
        line(metric, "live-b, against live-a", [(series(b[key]), series(a[key])) for key in keys if a[key] and b[key]])
        line(metric, "virtual, against the driver", [(series(virtual[key]), series(driver[key])) for key in keys if virtual[key] and driver[key]])
        line(metric, "both live series, against the driver", [(live[key], series(driver[key])) for key in keys if key in live and driver[key]])
    print("\n" + "\n".join(["misses:", *misses] if misses else ["no misses"]))
    whole = [combination for combination in combinations if all(part[combination, "load"] for part in (a, b, virtual))]
    if len(whole) < max(LEAST, len(combinations)):
        print(f"\n{len(whole)} of {len(combinations)} combinations have both live series and a virtual one; all of them are needed, and {LEAST} at least")
        sys.exit(2)
    sys.exit(0 if enough else 1)


main()
