#!/usr/bin/env python3
"""A link between two network namespaces, carried by this process: two TUN devices, and between them a delay, a rate and a queue of 1000 packets, each of both
directions, those under way included, as netem counts.

    link.py CLIENT-NAMESPACE SERVER-NAMESPACE RTT-MS MBIT

The client has 10.91.0.1, the server 10.91.0.2. Writes a line once packets go through.
"""
import collections
import fcntl
import os
import select
import struct
import subprocess
import sys
import time

TUNSETIFF = 0x400454CA
IFF_TUN_NO_PI = 0x1001
QUEUE = 1000


def tun(name, namespace, address):
    """Makes a device of this name in the namespace, and returns what its packets are read from and written to."""
    file = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK)
    fcntl.ioctl(file, TUNSETIFF, struct.pack("16sH", name.encode(), IFF_TUN_NO_PI))
    for command in [
        ["ip", "link", "set", name, "netns", namespace],
        ["ip", "-n", namespace, "addr", "add", address + "/24", "dev", name],
        ["ip", "-n", namespace, "link", "set", name, "up", "mtu", "1500", "txqueuelen", "5000"],
        # Of the route, as not every host lets a namespace have another default than its own.
        ["ip", "-n", namespace, "route", "replace", "10.91.0.0/24", "dev", name, "src", address, "congctl", "cubic", "initcwnd", "10"],
    ]:
        subprocess.run(command, check=True)
    return file


class Direction:
    """Packets on their way, in the order in which they arrive."""

    def __init__(self, source, target, delay, bytes_per_second):
        self.source, self.target = source, target
        self.delay, self.bytes_per_second = delay, bytes_per_second
        self.under_way = collections.deque()
        self.free_at = 0.0

    def take(self, now):
        while True:
            try:
                packet = os.read(self.source, 65536)
            except BlockingIOError:
                return
            if len(self.under_way) < QUEUE:
                self.free_at = max(now, self.free_at) + len(packet) / self.bytes_per_second
                self.under_way.append((self.free_at + self.delay, packet))

    def deliver(self, now):
        while self.under_way and self.under_way[0][0] <= now:
            try:
                os.write(self.target, self.under_way.popleft()[1])
            except OSError:
                pass  # The device is down: its namespace ends.


def main():
    client, server, rtt_ms, mbit = sys.argv[1:]
    delay, rate = float(rtt_ms) / 2e3, float(mbit) * 1e6 / 8
    pid = os.getpid()
    ends = [tun(f"lkc{pid}", client, "10.91.0.1"), tun(f"lks{pid}", server, "10.91.0.2")]
    there = Direction(ends[0], ends[1], delay, rate)
    back = Direction(ends[1], ends[0], delay, rate)
    print("up", flush=True)
    while True:
        now = time.monotonic()
        for direction in there, back:
            direction.deliver(now)
        due = [direction.under_way[0][0] for direction in (there, back) if direction.under_way]
        wait = max(0.0, min(due) - time.monotonic()) if due else None
        readable = select.select(ends, [], [], wait)[0]
        now = time.monotonic()
        for direction in there, back:
            if direction.source in readable:
                direction.take(now)


main()
