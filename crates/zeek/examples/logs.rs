//! Makes up `ssl.log`, `conn.log` and `lastbyte.log` with the shape of real ones, always the same
//! from a seed:
//!
//!     logs KIND CONNECTIONS SEED
//!
//! KIND is `ssl`, `conn` or `lastbyte` for TSV, or `ssl-json` and so on. Rows are in the order in
//! which Zeek writes them: those of `ssl.log` when the handshake is over, those of `conn.log` when
//! the connection is. For each connection with TLS there are two without, as on a network with DNS.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::env;
use std::io::{self, BufWriter, Write};

/// 2026-11-01T00:00:00Z in microseconds, and the time between two connections with TLS.
const BEGIN: u64 = 1_793_491_200_000_000;
const APART: u64 = 1_000;

fn main() {
    let arguments: Vec<String> = env::args().collect();
    let [_, kind, connections, seed] = arguments.as_slice() else {
        panic!("usage: logs ssl|conn|lastbyte[-json] CONNECTIONS SEED");
    };
    let connections: u64 = connections.parse().expect("CONNECTIONS is no number");
    let seed: u64 = seed.parse().expect("SEED is no number");
    let out = BufWriter::with_capacity(1 << 20, io::stdout().lock());
    let (kind, json) = match kind.strip_suffix("-json") {
        Some(kind) => (kind, true),
        None => (kind.as_str(), false),
    };
    let written = match kind {
        "ssl" => ssl(out, connections, seed, json),
        "conn" => conn(out, connections, seed, json),
        "lastbyte" => lastbyte(out, connections, seed, json),
        _ => panic!("no such log: {kind}"),
    };
    match written {
        // A reader may have enough.
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => {}
        written => written.expect("can't write"),
    }
}

/// SplitMix64.
struct Luck(u64);

impl Luck {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    fn below(&mut self, end: u64) -> u64 {
        self.next() % end
    }

    fn percent(&mut self, percent: u64) -> bool {
        self.below(100) < percent
    }

    /// Many small ones and few large ones: the middle of three octaves, times up to 2^12.
    fn skewed(&mut self, least: u64) -> u64 {
        let octave = self.below(4) * self.below(4) + self.below(4);
        (least << octave) + self.below(least << octave)
    }
}

/// One connection with TLS.
struct Connection {
    /// Microseconds, as all times.
    start: u64,
    uid: String,
    client: String,
    port: u64,
    server: String,
    name: String,
    version: Option<&'static str>,
    quic: bool,
    resumed: bool,
    established: bool,
    duration: u64,
    sent: u64,
    received: u64,
    rtt: u64,
    missed: u64,
    state: &'static str,
    server_handshake: u64,
}

impl Connection {
    fn new(index: u64, begin: u64, seed: u64) -> Self {
        let mut luck = Luck(seed ^ index.wrapping_mul(0xd6e8_feb8_6659_fd93));
        let start = begin + index * APART + luck.below(APART);
        let cdn = luck.percent(60);
        let site = luck.below(50) * luck.below(50);
        let quic = luck.percent(if cdn { 30 } else { 5 });
        let version = match luck.below(100) {
            _ if quic => Some("TLSv13"),
            0..75 => Some("TLSv13"),
            75..95 => Some("TLSv12"),
            95 => Some("TLSv10"),
            _ => None,
        };
        let resumed = version.is_some() && luck.percent(if cdn { 60 } else { 35 });
        let rtt = luck.skewed(2_000);
        let flight = 900
            + luck.below(400)
            + if resumed {
                0
            } else {
                2_000 + luck.below(3_000)
            };
        let established = version.is_some() && !quic && luck.percent(97);
        Connection {
            start,
            uid: uid(luck.next(), luck.next()),
            client: format!(
                "10.{}.{}.{}",
                luck.below(4),
                luck.below(256),
                luck.below(256)
            ),
            port: 32_768 + luck.below(28_000),
            server: if cdn {
                format!(
                    "104.{}.{}.{}",
                    16 + luck.below(16),
                    luck.below(256),
                    luck.below(256)
                )
            } else {
                format!("198.51.{}.{}", site / 256, site % 256)
            },
            name: if cdn {
                format!("d{site}a{}.cloudfront.net", site * 7)
            } else {
                format!("www{}.site-{site}.example", site % 3)
            },
            version,
            quic,
            resumed,
            established,
            duration: rtt * 3 + luck.skewed(20_000),
            sent: 500 + luck.skewed(200),
            received: flight + 300 + luck.skewed(400),
            rtt,
            missed: if luck.percent(1) { 1460 } else { 0 },
            state: [
                "SF", "SF", "SF", "SF", "SF", "SF", "RSTO", "S1", "RSTR", "SH",
            ][luck.below(10) as usize],
            server_handshake: flight,
        }
    }

    fn history(&self) -> &'static str {
        match (self.version, self.quic, self.resumed) {
            (None, _, _) => "C",
            (_, true, _) => "Cs",
            (Some("TLSv13"), _, _) => "CsiI",
            (_, _, true) => "CsiIf",
            (_, _, false) => "CsxkfnGIi",
        }
    }

    /// When its row of `ssl.log` is written: the others are not over before the connection is.
    fn settled(&self) -> u64 {
        if self.established {
            self.start + 2 * self.rtt
        } else {
            self.ended()
        }
    }

    fn ended(&self) -> u64 {
        self.start + self.duration + if self.quic { 60_000_000 } else { 5_000_000 }
    }
}

fn uid(high: u64, low: u64) -> String {
    const DIGITS: &[u8; 62] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
    let mut left = (u128::from(high) << 32) ^ u128::from(low);
    let mut uid = String::from("C");
    while left > 0 {
        uid.push(char::from(DIGITS[(left % 62) as usize]));
        left /= 62;
    }
    uid
}

fn seconds(micros: u64) -> String {
    format!("{}.{:06}", micros / 1_000_000, micros % 1_000_000)
}

/// Connections in the order of `when`, which is never before they start.
fn ordered(
    connections: u64,
    seed: u64,
    when: fn(&Connection) -> u64,
    mut write: impl FnMut(u64, &Connection) -> io::Result<()>,
) -> io::Result<()> {
    // Those of seed 2 come after those of seed 1.
    let begin = BEGIN + seed.wrapping_sub(1) % 1000 * connections * APART;
    let mut waiting = BinaryHeap::new();
    let mut kept = std::collections::HashMap::new();
    for index in 0..connections {
        let connection = Connection::new(index, begin, seed);
        let now = connection.start;
        waiting.push(Reverse((when(&connection), index)));
        kept.insert(index, connection);
        while waiting
            .peek()
            .is_some_and(|Reverse((time, _))| *time <= now)
        {
            let Reverse((_, index)) = waiting.pop().unwrap();
            write(index, &kept.remove(&index).unwrap())?;
        }
    }
    while let Some(Reverse((_, index))) = waiting.pop() {
        write(index, &kept.remove(&index).unwrap())?;
    }
    Ok(())
}

fn header(out: &mut impl Write, path: &str, fields: &str, types: &str) -> io::Result<()> {
    writeln!(
        out,
        "#separator \\x09\n#set_separator\t,\n#empty_field\t(empty)\n#unset_field\t-"
    )?;
    writeln!(out, "#path\t{path}\n#open\t2026-11-01-00-00-00")?;
    writeln!(out, "#fields\t{}", fields.replace(' ', "\t"))?;
    writeln!(out, "#types\t{}", types.replace(' ', "\t"))
}

fn ssl(mut out: impl Write, connections: u64, seed: u64, json: bool) -> io::Result<()> {
    if !json {
        header(
            &mut out,
            "ssl",
            "ts uid id.orig_h id.orig_p id.resp_h id.resp_p version cipher curve server_name resumed last_alert next_protocol established ssl_history cert_chain_fps client_cert_chain_fps sni_matches_cert",
            "time string addr port addr port string string string string bool string string bool string vector[string] vector[string] bool",
        )?;
    }
    ordered(connections, seed, Connection::settled, |_, c| {
        let (ts, uid, client, port) = (seconds(c.start + c.rtt), &c.uid, &c.client, c.port);
        let (server, name, resumed, established) = (&c.server, &c.name, c.resumed, c.established);
        let history = c.history();
        if json {
            write!(
                out,
                r#"{{"ts":{ts},"uid":"{uid}","id.orig_h":"{client}","id.orig_p":{port},"id.resp_h":"{server}","id.resp_p":443,"#
            )?;
            if let Some(version) = c.version {
                write!(
                    out,
                    r#""version":"{version}","cipher":"TLS_AES_128_GCM_SHA256","curve":"x25519","#
                )?;
            }
            return writeln!(
                out,
                r#""server_name":"{name}","resumed":{resumed},"established":{established},"ssl_history":"{history}"}}"#
            );
        }
        let letter = |truth| if truth { 'T' } else { 'F' };
        let (version, cipher, curve) = match c.version {
            Some(version) => (version, "TLS_AES_128_GCM_SHA256", "x25519"),
            None => ("-", "-", "-"),
        };
        writeln!(
            out,
            "{ts}\t{uid}\t{client}\t{port}\t{server}\t443\t{version}\t{cipher}\t{curve}\t{name}\t{}\t-\t-\t{}\t{history}\t-\t-\t-",
            letter(resumed),
            letter(established),
        )
    })?;
    if json {
        Ok(())
    } else {
        writeln!(out, "#close\t2026-11-02-00-00-00")
    }
}

fn conn(mut out: impl Write, connections: u64, seed: u64, json: bool) -> io::Result<()> {
    if !json {
        header(
            &mut out,
            "conn",
            "ts uid id.orig_h id.orig_p id.resp_h id.resp_p proto service duration orig_bytes resp_bytes conn_state local_orig local_resp missed_bytes history orig_pkts orig_ip_bytes resp_pkts resp_ip_bytes tunnel_parents ip_proto",
            "time string addr port addr port enum string interval count count string bool bool count string count count count count set[string] count",
        )?;
    }
    let mut luck = Luck(!seed);
    ordered(connections, seed, Connection::ended, |_, c| {
        for _ in 0..2 {
            let ts = seconds(c.ended() - 30_000 + luck.below(10_000));
            let (uid, client, port) = (uid(luck.next(), luck.next()), &c.client, c.port);
            let (duration, sent, received) =
                (luck.skewed(500), 30 + luck.below(30), 80 + luck.below(200));
            let duration = seconds(duration);
            if json {
                writeln!(
                    out,
                    r#"{{"ts":{ts},"uid":"{uid}","id.orig_h":"{client}","id.orig_p":{port},"id.resp_h":"10.0.0.53","id.resp_p":53,"proto":"udp","service":"dns","duration":{duration},"orig_bytes":{sent},"resp_bytes":{received},"conn_state":"SF","local_orig":true,"local_resp":true,"missed_bytes":0,"history":"Dd","orig_pkts":1,"orig_ip_bytes":{},"resp_pkts":1,"resp_ip_bytes":{},"ip_proto":17}}"#,
                    sent + 28,
                    received + 28
                )?;
            } else {
                writeln!(
                    out,
                    "{ts}\t{uid}\t{client}\t{port}\t10.0.0.53\t53\tudp\tdns\t{duration}\t{sent}\t{received}\tSF\tT\tT\t0\tDd\t1\t{}\t1\t{}\t-\t17",
                    sent + 28,
                    received + 28
                )?;
            }
        }
        let (ts, uid, client, port, server) =
            (seconds(c.start), &c.uid, &c.client, c.port, &c.server);
        let (proto, service, number) = if c.quic {
            ("udp", "quic,ssl", 17)
        } else {
            ("tcp", "ssl", 6)
        };
        let (duration, sent, received, state, missed) =
            (seconds(c.duration), c.sent, c.received, c.state, c.missed);
        let (to, from) = (sent / 1400 + 3, received / 1400 + 3);
        if json {
            writeln!(
                out,
                r#"{{"ts":{ts},"uid":"{uid}","id.orig_h":"{client}","id.orig_p":{port},"id.resp_h":"{server}","id.resp_p":443,"proto":"{proto}","service":"{service}","duration":{duration},"orig_bytes":{sent},"resp_bytes":{received},"conn_state":"{state}","local_orig":true,"local_resp":false,"missed_bytes":{missed},"history":"ShADadFf","orig_pkts":{to},"orig_ip_bytes":{},"resp_pkts":{from},"resp_ip_bytes":{},"ip_proto":{number}}}"#,
                sent + 40 * to,
                received + 40 * from
            )
        } else {
            writeln!(
                out,
                "{ts}\t{uid}\t{client}\t{port}\t{server}\t443\t{proto}\t{service}\t{duration}\t{sent}\t{received}\t{state}\tT\tF\t{missed}\tShADadFf\t{to}\t{}\t{from}\t{}\t-\t{number}",
                sent + 40 * to,
                received + 40 * from
            )
        }
    })?;
    if json {
        Ok(())
    } else {
        writeln!(out, "#close\t2026-11-02-00-00-00")
    }
}

fn lastbyte(mut out: impl Write, connections: u64, seed: u64, json: bool) -> io::Result<()> {
    if !json {
        header(
            &mut out,
            "lastbyte",
            "ts uid client_handshake_bytes server_handshake_bytes tcp_rtt",
            "time string count count interval",
        )?;
    }
    ordered(connections, seed, Connection::settled, |_, c| {
        if !c.established {
            return Ok(());
        }
        let (ts, uid, bytes, rtt) = (
            seconds(c.settled()),
            &c.uid,
            c.server_handshake,
            seconds(c.rtt),
        );
        match (json, c.version) {
            (true, _) => writeln!(
                out,
                r#"{{"ts":{ts},"uid":"{uid}","client_handshake_bytes":58,"server_handshake_bytes":{bytes},"tcp_rtt":{rtt}}}"#
            ),
            (false, Some("TLSv13")) => writeln!(out, "{ts}\t{uid}\t58\t{bytes}\t{rtt}"),
            (false, _) => writeln!(out, "{ts}\t{uid}\t-\t-\t{rtt}"),
        }
    })?;
    if json {
        Ok(())
    } else {
        writeln!(out, "#close\t2026-11-02-00-00-00")
    }
}
