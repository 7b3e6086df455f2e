"""Has tools carry the same connections, by turns, and prints what each took, and how near its times are to arithmetic:

    measure.py FOLDER ROUNDS LASTBYTE TOOL=PROGRAM...

FOLDER is an empty one for what is needed in between. Each tool is one of TOOLS, and its program what scripts/beside has found. A tool that fails is named, and
has no row; the exit code is 1 then.
"""

import importlib.metadata
import json
import os
import pathlib
import re
import shlex
import shutil
import statistics
import subprocess
import sys
import time
from typing import NamedTuple

import duckdb

GROUP = "secp256r1"
CHAIN = "rsa-2048/intermediates=1/scts=0"
DATA = 200 * 1024
# A response on the wire, as the arithmetic has it: TLS's records are of 16 KiB, and 22 bytes longer; the head is one more.
RESPONSE = DATA + 14 * 22
# A request, sealed.
REQUEST = 81
HOST = "server.example"
PORT = 4433
# Of the server, in namespaces of their own.
SERVER = "192.0.2.1"
# Whoever owns nothing, as mahimahi is run.
NOBODY = 65534
LIMIT = 600
# In real time, what else the machine does comes after, as Lastbyte's live engine has it by itself: the lateness of a tool is its own then.
FIRST = ["chrt", "--rr", "1"]


class Question(NamedTuple):
    mbit: int
    rtt_ms: int
    # In a certificate of our own, which they make as long as is wanted, with any OpenSSL; with none, the chain is Lastbyte's.
    names: int

    def options(self):
        """Of `lastbyte compare` and `explain`, in the folder of the chains."""
        chain = f"{self.chain()}/chain.pem" if self.names else CHAIN
        return [f"{GROUP}/{chain}", "--rtt", f"{self.rtt_ms}ms", "--rate", f"{self.mbit}mbit", "--data", f"{DATA}B"]

    def chain(self):
        return f"chain-{self.names}"


# The last has a server's flight as long as one with ML-DSA-65, which an initial window of 10 segments does not hold.
QUESTIONS = [Question(1, 200, 0), Question(100, 35, 0), Question(100, 35, 660)]


class Times(NamedTuple):
    """Of one connection, from just before it connects, in ms."""

    handshake: float
    last_byte: float


class Failed(Exception):
    pass


class Group:
    """A cgroup of its own, of whichever version, for what a command and all that it starts take."""

    def __init__(self):
        root = pathlib.Path("/sys/fs/cgroup")
        old = root / "cpuacct"
        self.folder = (old if old.is_dir() else root) / f"lastbyte-beside-{os.getpid()}"
        try:
            self.folder.mkdir()
        except OSError as error:
            sys.exit(f"error: no cgroup can be made here: {error}")

    def seconds(self):
        old = self.folder / "cpuacct.usage"
        if old.exists():
            return int(old.read_text()) / 1e9
        return int(re.search(r"^usage_usec (\d+)$", (self.folder / "cpu.stat").read_text(), re.MULTILINE)[1]) / 1e6

    def enter(self):
        (self.folder / "cgroup.procs").write_text(str(os.getpid()))

    def remove(self):
        # What was ended is gone a moment later.
        for _ in range(100):
            try:
                self.folder.rmdir()
                return
            except OSError:
                time.sleep(0.1)


def run(command, **options):
    """What the command prints."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=LIMIT, stdin=subprocess.DEVNULL, **options)
    except subprocess.TimeoutExpired:
        raise Failed(f"{command[0]} took longer than {LIMIT} s") from None
    except OSError as error:
        raise Failed(str(error)) from None
    if done.returncode != 0:
        last = (done.stderr or done.stdout).strip().splitlines()[-3:]
        raise Failed(f"{command[0]} ended with {done.returncode}: {' '.join(last)}")
    return done.stdout


class Setting:
    """What tools are given: the group that counts, a folder, and of each question bytes on the wire and arithmetic."""

    def __init__(self, folder, lastbyte):
        self.folder = pathlib.Path(folder)
        self.group = Group()
        # mahimahi's client is nobody.
        self.folder.chmod(0o755)
        (self.folder / "data").write_bytes(bytes(DATA))
        self.sizes, self.arithmetic = {}, {}
        for question in QUESTIONS:
            if not (self.folder / question.chain()).exists():
                self.make_chain(question, lastbyte)
            [arm] = json.loads(run([lastbyte, "explain", *question.options(), "--format", "json"], cwd=self.folder))["arms"]
            self.sizes[question] = [arm["client_hello_wire_bytes"], arm["server_flight_wire_bytes"], arm["client_finish_wire_bytes"] + REQUEST, RESPONSE]
            [times] = arm["times"]
            self.arithmetic[question] = Times(times["handshake_ns"] / 1e6, times["ttlb_ns"] / 1e6)

    def make_chain(self, question, lastbyte):
        """A chain, its key, and its root, all of RSA-2048."""
        folder = self.folder / question.chain()
        if question.names:
            self.sign(folder, [HOST, *(f"www{number:03}.{HOST}" for number in range(1, question.names))])
        else:
            run([lastbyte, "chain", "new", CHAIN, "--output", folder])
        # openssl sends all of one file after the first of another.
        (folder / "rest.pem").write_text((folder / "chain.pem").read_text().split("-----END CERTIFICATE-----\n", 1)[1])

    def sign(self, folder, names):
        """A certificate with these names, straight from the root."""
        folder.mkdir()
        alternatives = ",".join(f"DNS:{name}" for name in names)
        (folder / "extensions").write_text(f"subjectAltName={alternatives}\nbasicConstraints=CA:FALSE\n")
        new = ["openssl", "req", "-newkey", "rsa:2048", "-nodes", "-subj"]
        run([*new, "/CN=root", "-x509", "-keyout", "root.key", "-out", "root.pem"], cwd=folder)
        run([*new, f"/CN={HOST}", "-keyout", "key.pem", "-out", "request.pem"], cwd=folder)
        sign = ["openssl", "x509", "-req", "-in", "request.pem", "-CA", "root.pem", "-CAkey", "root.key", "-CAcreateserial"]
        run([*sign, "-days", "30", "-extfile", "extensions", "-out", "chain.pem"], cwd=folder)

    def counted(self, command):
        """What the command prints, in the cgroup. All that it has started ends with it."""
        return run(command, cwd=self.folder, preexec_fn=self.group.enter)

    def apart(self, script):
        """Likewise, of a script of the shell with namespaces of its own, in real time."""
        own = [*FIRST, "unshare", "--net", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc"]
        return self.counted([*own, "sh", "-c", "set -e\nip link set lo up\n" + script])

    def server(self, question):
        """Each connection gets a file, and is closed."""
        chain = self.folder / question.chain()
        rest = ["-cert_chain", f"{chain}/rest.pem"] if (chain / "rest.pem").stat().st_size else []
        return [
            *["openssl", "s_server", "-quiet", "-WWW", "-accept", str(PORT), "-tls1_3", "-groups", "P-256", "-num_tickets", "0"],
            *["-cert", f"{chain}/chain.pem", "-key", f"{chain}/key.pem", *rest],
        ]

    def client(self, question, address, connections):
        """One process that connects anew for each response. What comes after # is not sent."""
        return [
            *["curl", "--silent", "--show-error", "--fail-early", "--http1.0", "--no-alpn", "--no-sessionid", "--tlsv1.3", "--curves", "P-256"],
            *["--cacert", f"{self.folder}/{question.chain()}/root.pem", "--resolve", f"{HOST}:{PORT}:{address}", "--output", "/dev/null"],
            *["--write-out", r"%{size_download} %{num_connects} %{time_appconnect} %{time_total}\n"],
            f"https://{HOST}:{PORT}/data#[1-{connections}]",
        ]


def of_curl(text):
    """The times that curl wrote, where each response came whole, on a connection of its own."""
    times = []
    for line in text.splitlines():
        match = re.fullmatch(r"(\d+) (\d+) ([\d.]+) ([\d.]+)", line)
        if not match:
            raise Failed(f"instead of times, there was {line}")
        size, connects, handshake, last_byte = match.groups()
        if (int(size), int(connects)) != (DATA, 1):
            raise Failed(f"a response had {size} bytes, on {connects} new connections, after {last_byte} s")
        times.append(Times(1000 * float(handshake), 1000 * float(last_byte)))
    return times


def lastbyte(engine, own):
    def measure(setting, program, question, connections):
        rows = setting.folder / "rows.parquet"
        rows.unlink(missing_ok=True)
        options = ["--engine", engine, "--connections", str(connections), "--save", rows]
        setting.counted([program, "compare", "--baseline", *question.options(), *options, *own])
        found = duckdb.execute("select handshake_ns / 1e6, ttlb_ns / 1e6 from read_parquet(?)", [str(rows)]).fetchall()
        return [Times(*row) for row in found]

    return measure


def ns3(setting, program, question, connections):
    sizes = map(str, setting.sizes[question])
    text = setting.counted([program, str(connections), str(question.mbit), str(question.rtt_ms), *sizes])
    return [Times(*(int(time) / 1e6 for time in line.split())) for line in text.splitlines()]


# Two hosts of a graph, whose bandwidths are the link's. One worker, as they take turns, and a second would spin.
SHADOW = """
general:
  stop_time: {seconds} s
  parallelism: 1
  log_level: warning
  heartbeat_interval: null
  template_directory: {folder}/template
  data_directory: {folder}/shadow
experimental:
  use_new_tcp: {new_tcp}
network:
  graph:
    type: gml
    inline: |
      graph [
        directed 0
        node [
          id 0
          host_bandwidth_up "{mbit} Mbit"
          host_bandwidth_down "{mbit} Mbit"
        ]
        node [
          id 1
          host_bandwidth_up "{mbit} Mbit"
          host_bandwidth_down "{mbit} Mbit"
        ]
        edge [
          source 0
          target 0
          latency "1 ms"
        ]
        edge [
          source 1
          target 1
          latency "1 ms"
        ]
        edge [
          source 0
          target 1
          latency "{latency} us"
        ]
      ]
hosts:
  server:
    network_node_id: 0
    ip_addr: 11.0.0.1
    processes: [{{path: {server[0]}, args: {server[1]}, expected_final_state: running}}]
  client:
    network_node_id: 1
    ip_addr: 11.0.0.2
    processes: [{{path: {client[0]}, args: {client[1]}, start_time: 1 s}}]
"""


def shadow(new_tcp):
    return lambda setting, program, question, connections: simulate(setting, program, question, connections, new_tcp)


def simulate(setting, program, question, connections, new_tcp):
    def process(command):
        return command[0], json.dumps(command[1:])

    config = SHADOW.format(
        # Until long after the last connection, as nothing is computed then.
        seconds=10 * connections + 60,
        folder=setting.folder,
        new_tcp=new_tcp,
        mbit=question.mbit,
        latency=500 * question.rtt_ms,
        server=process(setting.server(question)),
        # Its clock begins in the year 2000, before the chain is valid.
        client=process([*setting.client(question, "11.0.0.1", connections), "--insecure"]),
    )
    (setting.folder / "shadow.yaml").write_text(config)
    shutil.rmtree(setting.folder / "shadow", ignore_errors=True)
    # A process has the folder of its host as its own.
    host = setting.folder / "template/hosts/server"
    host.mkdir(parents=True, exist_ok=True)
    shutil.copy(setting.folder / "data", host)
    setting.counted([program, "shadow.yaml"])
    [out] = (setting.folder / "shadow/hosts/client").glob("curl*.stdout")
    return of_curl(out.read_text())


def emulated(setting, question, around, before):
    """In real time: a server out here, and a client in what an emulator makes, which routes all to here."""
    # Not all machines let namespaces have CUBIC. As nothing is lost, Reno opens its window likewise, and what machines have by themselves may not.
    congestion = "sysctl --quiet --write net.ipv4.tcp_congestion_control"
    return of_curl(
        setting.apart(
            f"ip address add {SERVER} dev lo\n{congestion}=cubic 2>/dev/null || {congestion}=reno\n{before}\n"
            f"{shlex.join(setting.server(question))} </dev/null >server.log 2>&1 & server=$!\n"
            f"until ss --listening --numeric --tcp | grep --quiet :{PORT}; do sleep 0.1; done\n"
            f"{shlex.join(around)}\nkill $server"
        )
    )


def rattan(setting, program, question, connections):
    rates = []
    for side in ["uplink", "downlink"]:
        rates += [f"--{side}-bandwidth", f"{question.mbit}Mbps", f"--{side}-delay", f"{500 * question.rtt_ms}us"]
    # Namespaces that it names, and locks of addresses, are here only.
    before = "mount -t tmpfs tmpfs /run\nmkdir -p /tmp/rattan\nmount -t tmpfs tmpfs /tmp/rattan"
    return emulated(setting, question, ["env", "RUST_LOG=off", program, "link", *rates, "--", *setting.client(question, SERVER, connections)], before)


def mahimahi(setting, program, question, connections):
    # A packet of 1500 bytes may leave in each of these milliseconds, which begin again after the last.
    packets, period = question.mbit * 1000, 12_000
    trace = setting.folder / "trace"
    trace.write_text("".join(f"{-(-(number + 1) * period // packets)}\n" for number in range(packets)))
    # A namespace has forwarding as the machine has it, and the inner shell wants it.
    inner = ["sh", "-c", 'echo $$ >inner; while [ ! -e forwards ]; do sleep 0.1; done; exec "$@"', "inner"]
    link_shell = [f"{program}/mm-link", str(trace), str(trace), "--", *setting.client(question, SERVER, connections)]
    user = ["setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups"]
    before = (
        f"sysctl --quiet --write net.ipv4.ip_forward=1\nrm -f forwards\n: >inner\nchown {NOBODY} inner\n"
        "(while [ ! -s inner ]; do sleep 0.1; done\nnsenter --net --target $(cat inner) sysctl --quiet --write net.ipv4.ip_forward=1\n: >forwards) &"
    )
    return emulated(setting, question, [*user, f"{program}/mm-delay", str(question.rtt_ms // 2), *inner, *link_shell], before)


class Tool(NamedTuple):
    name: str
    tls: str
    # What asks for it: options, or the package of PyPI.
    version: object
    measure: object
    # Of a round, of each question: so many that starting it counts little, or as many as real time allows.
    connections: list
    # The first of a round whose times don't count, as they find an emulator that still begins.
    warm_up: int = 0


TOOLS = {
    "lastbyte": Tool("Lastbyte, virtual", "yes", ["--version"], lastbyte("virtual", ["--cpu", "none"]), [1000, 1000, 1000]),
    "live": Tool("Lastbyte, live", "yes", ["--version"], lastbyte("live", []), [100, 200, 200]),
    "ns-3": Tool("ns-3", "its bytes", "ns3", ns3, [1000, 1000, 1000]),
    "shadow": Tool("Shadow", "yes", ["--version"], shadow("false"), [200, 200, 200]),
    "shadow-new-tcp": Tool("Shadow, `use_new_tcp`", "yes", ["--version"], shadow("true"), [200, 200, 200]),
    "rattan": Tool("rattan", "yes", ["--version"], rattan, [9, 41, 41], 1),
    "mahimahi": Tool("mahimahi", "yes", None, mahimahi, [9, 41, 41], 1),
}


class Row:
    """What a tool took for a question, of each round."""

    def __init__(self):
        self.cpu = []
        self.clock = []
        self.rounds = []

    def add(self, cpu, clock, times):
        self.cpu.append(cpu)
        self.clock.append(clock)
        self.rounds.append(times)

    def times(self, of, warm_up):
        return [getattr(one, of) for times in self.rounds for one in times[warm_up:]]


def spread(values, digits):
    """Median, and least and most in parentheses."""
    least, middle, most = (f"{value:.{digits}f}" for value in [min(values), statistics.median(values), max(values)])
    return f"{middle} ({least}, {most})"


def against(values, arithmetic):
    middle = statistics.median(values)
    return f"{spread(values, 1)} | {100 * (middle / arithmetic - 1):+.1f} %".replace("-", "−")


def table(question, setting, rows):
    arithmetic = setting.arithmetic[question]
    text = (
        f"\n{DATA >> 10} KiB at {question.mbit} Mbit/s and {question.rtt_ms} ms, a server's flight of {setting.sizes[question][1]} bytes; "
        f"by arithmetic: handshake {arithmetic.handshake:.1f} ms, last byte {arithmetic.last_byte:.1f} ms\n\n"
        "| with | TLS | n | connections a CPU second | virtual s a CPU second | clock, ms a connection | handshake, ms | | last byte, ms | |\n"
        "|---|---|--:|--:|--:|--:|--:|--:|--:|--:|\n"
    )
    for tool, row in rows.items():
        name, tls, _, _, _, warm_up = TOOLS[tool]
        counts = [len(times) for times in row.rounds]
        speeds = [count / cpu for count, cpu in zip(counts, row.cpu)]
        virtual = [sum(one.last_byte for one in times) / 1000 / cpu for times, cpu in zip(row.rounds, row.cpu)]
        clock = [1000 * clock / count for count, clock in zip(counts, row.clock)]
        text += (
            f"| {name} | {tls} | {len(counts)} × {counts[0]} | {spread(speeds, 0)} | {spread(virtual, 0)} | {spread(clock, 1)} "
            f"| {against(row.times('handshake', warm_up), arithmetic.handshake)} | {against(row.times('last_byte', warm_up), arithmetic.last_byte)} |\n"
        )
    return text


def versions(found):
    for program, option in [("curl", "--version"), ("openssl", "version")]:
        print(f"{program}: {run([program, option]).splitlines()[0]}", file=sys.stderr)
    for tool, program in found.items():
        match TOOLS[tool].version:
            case None:
                said = program
            case str(package):
                said = importlib.metadata.version(package)
            case options:
                said = run([program, *options]).splitlines()[0]
        print(f"{TOOLS[tool].name}: {said}", file=sys.stderr)


def main(folder, rounds, lastbyte, *programs):
    found = dict(program.split("=", 1) for program in programs)
    setting = Setting(folder, lastbyte)
    rows = {question: {tool: Row() for tool in found} for question in QUESTIONS}
    failed = set()
    try:
        versions(found)
        for number in range(int(rounds)):
            for place, question in enumerate(QUESTIONS):
                for tool in [tool for tool in found if tool not in failed]:
                    load = os.getloadavg()[0]
                    print(f"round {number + 1} of {rounds}: {question.mbit} Mbit/s, {question.chain()}, {tool} (load {load:.1f})", file=sys.stderr)
                    cpu, clock = setting.group.seconds(), time.monotonic()
                    wanted = TOOLS[tool].connections[place]
                    try:
                        times = TOOLS[tool].measure(setting, found[tool], question, wanted)
                        if len(times) != wanted:
                            raise Failed(f"{len(times)} of {wanted} connections came to an end")
                    except Failed as error:
                        print(f"without {tool}: {error}", file=sys.stderr)
                        failed.add(tool)
                        continue
                    rows[question][tool].add(setting.group.seconds() - cpu, time.monotonic() - clock, times)
    finally:
        setting.group.remove()
    if failed == set(found):
        return 1
    for question in QUESTIONS:
        print(table(question, setting, {tool: row for tool, row in rows[question].items() if tool not in failed}), end="")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
