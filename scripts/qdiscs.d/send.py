"""Sends packets through Linux's queueing disciplines, and notes what becomes of them: scripts/qdiscs runs it as init of a guest."""
import ctypes
import fcntl
import os
import select
import socket
import struct
import subprocess
import time
import traceback

OUT = "/dev/out"
COUNT = 100_000
# As the tests of lastbyte-link have them, in crates/link/src/qdisc/tests.rs.
QDISCS = """
codel codel limit 1000
codel_ecn codel limit 200 target 10ms interval 50ms ecn
fq_codel fq_codel limit 10240
fq_codel_small fq_codel limit 300 noecn
pie pie limit 1000 target 15ms
pie_ecn pie limit 1000 target 15ms ecn
red red limit 400000 avpkt 1000 probability 0.02 bandwidth 10mbit burst 55
red_ecn red limit 400000 avpkt 1000 probability 0.02 bandwidth 10mbit burst 55 ecn
fifo pfifo limit 100
bytes bfifo limit 65536
"""
# Of Linux 6.17 and later. tc knows it without settings, whichever its version.
L4S = "dualpi2 dualpi2"
libc = ctypes.CDLL(None)

def mount(what, kind, at, data=None):
    os.makedirs(at, exist_ok=True)
    if libc.mount(what.encode(), at.encode(), kind.encode(), 0, data and data.encode()) != 0:
        raise OSError("mount " + at)

def mix(value):
    value = (value + 0x9e3779b97f4a7c15) & (2**64 - 1)
    value = ((value ^ (value >> 30)) * 0xbf58476d1ce4e5b9) & (2**64 - 1)
    value = ((value ^ (value >> 27)) * 0x94d049bb133111eb) & (2**64 - 1)
    return value ^ (value >> 31)

def arrivals():
    """When each packet comes, in ns from the beginning, its length with the IP header, its flow, and whether it is ECN's."""
    at = 0
    for number in range(COUNT):
        draw = mix(number)
        # Phases of 2048 packets, from half of what the link carries to three times as much.
        load = (60, 100, 110, 130, 50, 200, 300, 90)[number // 2048 % 8]
        length = 200 + draw % 325 * 4
        at += 800 * 850 * 100 // load * (50 + draw // 2**16 % 101) // 100 // 3200 * 3200 + 3200
        yield at + 37, length, draw // 2**32 % 8, draw // 2**40 % 2

def tc(*words):
    subprocess.run(["tc", *words], check=True)

def traffic_class(flow, ect, l4s):
    """What a flow's packets say about congestion: nothing, ECT(0), or ECT(1) of every other one where L4S is measured."""
    return (1 if l4s and flow % 2 else 2) if ect else 0

def measure(name, words, l4s=False):
    tun = os.open("/dev/net/tun", os.O_RDWR)
    fcntl.ioctl(tun, 0x400454ca, struct.pack("16sH22x", b"q0", 0x1001))
    subprocess.run(["ip", "addr", "add", "10.9.0.1/24", "dev", "q0"], check=True)
    subprocess.run(["ip", "link", "set", "q0", "up", "txqueuelen", "20000"], check=True)
    tc("qdisc", "add", "dev", "q0", "root", "handle", "1:", "tbf", "rate", "10mbit", "burst", "1502", "limit", "100000000")
    time.sleep(1)
    tc("qdisc", "add", "dev", "q0", "parent", "1:1", "handle", "10:", *words)
    added = time.clock_gettime_ns(time.CLOCK_MONOTONIC)
    begin = (time.clock_gettime_ns(time.CLOCK_MONOTONIC) // 10**9 + 2) * 10**9
    child = os.fork()
    if child == 0:
        sockets = []
        for flow in range(8):
            for ect in range(2):
                one = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
                one.setsockopt(socket.SOL_SOCKET, 32, 1 << 30)
                one.setsockopt(socket.IPPROTO_IP, socket.IP_TOS, traffic_class(flow, ect, l4s))
                one.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
                one.bind(("10.9.0.1", 2000 + flow))
                one.connect(("10.9.0.2", 9))
                sockets.append(one)
        buffer = bytes(1500)
        for number, (at, length, flow, ect) in enumerate(arrivals()):
            nap(begin + at)
            sockets[2 * flow + ect].send(struct.pack("!I", number) + buffer[: length - 32])
        nap(time.clock_gettime_ns(time.CLOCK_MONOTONIC) + 15 * 10**9)
        os._exit(0)
    os.set_blocking(tun, False)
    poll = select.poll()
    poll.register(tun, select.POLLIN)
    with open(f"{OUT}/{name}.out", "w") as out:
        out.write(f"{begin} {added}\n")
        while True:
            if not poll.poll(1000):
                if os.waitpid(child, os.WNOHANG)[0]:
                    break
                continue
            while True:
                try:
                    packet = os.read(tun, 2000)
                except BlockingIOError:
                    break
                now = time.clock_gettime_ns(time.CLOCK_MONOTONIC)
                if packet[0] != 0x45 or packet[9] != 17:
                    continue
                number = struct.unpack("!I", packet[28:32])[0]
                out.write(f"{now - begin} {number} {int(packet[1] & 3 == 3)}\n")
    os.close(tun)

class Timespec(ctypes.Structure):
    _fields_ = [("sec", ctypes.c_long), ("nsec", ctypes.c_long)]

def nap(until):
    spec = Timespec(until // 10**9, until % 10**9)
    libc.clock_nanosleep(1, 1, ctypes.byref(spec), None)

def main():
    mount("proc", "proc", "/proc")
    mount("devtmpfs", "devtmpfs", "/dev")
    mount("none", "hostfs", OUT, os.environ["FOLDER"])
    libc.prctl(29, 1, 0, 0, 0)
    try:
        for line in QDISCS.strip().splitlines():
            name, *words = line.split()
            measure(name, words)
        if tuple(int(part) for part in os.uname().release.split("-")[0].split(".")[:2]) >= (6, 17):
            name, *words = L4S.split()
            measure(name, words, l4s=True)
        else:
            print("lastbyte: this kernel has no dualpi2", flush=True)
        print("lastbyte: done", flush=True)
    except BaseException as error:
        print("lastbyte: failed", repr(error), flush=True)
        traceback.print_exc()
    libc.sync()
    libc.reboot(0x4321fedc)

main()
