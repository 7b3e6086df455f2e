//! What Merkle Tree Certificates cost, by the thread's CPU clock, but for what waits for a disk.
//!
//! `cargo bench -p lastbyte-mtc --all-features --bench mtc -- append proofs verify durable sizes replay`
//!
//! - `append`: entries per second and core, with DER, hashing and the tree.
//! - `proofs`: proofs of inclusion per second and core, in a tree of 4.4 million entries.
//! - `verify`: what a client computes for a certificate, without the signature of its own key.
//! - `durable`: entries per second on the disk, in batches of two seconds, at 10,000 certificates per second.
//! - `sizes`: hashes of a proof against the entries of a landmark: in a real tree of 10 million, then by
//!   arithmetic up to 10^9.
//! - `replay`: a week of the Web's issuance, 4.4 million an hour, as a tree: time, and what a client holds.
#![allow(clippy::unwrap_used, missing_docs)]

use std::path::Path;
use std::time::{Duration, Instant};

use lastbyte_mtc::issue::made_up_key;
use lastbyte_mtc::log::Log;
use lastbyte_mtc::{
    HashValue, LogId, LogNumber, Nodes, RelyingParty, Request, Sample, Subtree, Tree,
    TrustedAuthority, UnixTime, Validity, entry,
};
use nix::time::{ClockId, clock_gettime};

const NOW: UnixTime = UnixTime(1_800_000_000);
const WEEK: Duration = Duration::from_secs(7 * 86_400);
/// The draft's estimate of entries per landmark.
const HOUR: u64 = 4_400_000;

fn main() {
    let wanted: Vec<String> = std::env::args()
        .skip(1)
        .filter(|argument| !argument.starts_with('-'))
        .collect();
    let benches: [(&str, fn()); 6] = [
        ("append", append),
        ("proofs", proofs),
        ("verify", verify),
        ("durable", durable),
        ("sizes", sizes),
        ("replay", replay),
    ];
    for (name, bench) in benches {
        if wanted.is_empty() || wanted.iter().any(|wanted| wanted == name) {
            println!("## {name}\n");
            bench();
            println!();
        }
    }
}

fn cpu_time() -> Duration {
    let clock = ClockId::CLOCK_THREAD_CPUTIME_ID;
    clock_gettime(clock).unwrap().into()
}

/// Numbers that follow from a seed: splitmix64.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, end: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut number = self.0;
        number = (number ^ (number >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        number = (number ^ (number >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (number ^ (number >> 31)) % end
    }
}

fn log() -> LogId {
    LogId::new("32473.1".parse().unwrap(), LogNumber::FIRST).unwrap()
}

/// Requests of hosts of a usual length, for keys of P-256.
fn requests(count: u64) -> Vec<([String; 2], Vec<u8>)> {
    (0..count)
        .map(|number| {
            let host = format!("host-{number:08}.example.com");
            let www = format!("www.{host}");
            ([host, www], made_up_key(1, number))
        })
        .collect()
}

fn entry_of((names, key): &([String; 2], Vec<u8>)) -> Vec<u8> {
    let request = Request {
        names: &[&names[0], &names[1]],
        key,
        validity: Validity::of(NOW, WEEK),
    };
    request.entry(log().ca()).unwrap()
}

fn append() {
    let requests = requests(500_000);
    for round in 0..5 {
        let mut tree = Tree::new();
        let start = cpu_time();
        for request in &requests {
            tree.push(entry::leaf(&entry_of(request)));
        }
        let spent = cpu_time() - start;
        let rate = requests.len() as f64 / spent.as_secs_f64();
        let root = tree.root().unwrap();
        println!("{round}: {rate:9.0} entries/s ({root:.8})");
    }
}

/// A tree whose entries are numbers.
fn tree(size: u64) -> Tree {
    let mut tree = Tree::new();
    for number in 0..size {
        tree.push(HashValue::leaf([&number.to_be_bytes()[..]]));
    }
    tree
}

fn proofs() {
    const COUNT: u32 = 1_000_000;
    let tree = tree(HOUR);
    let [left, right] = Subtree::cover(0..HOUR);
    for round in 0..5 {
        let mut numbers = Numbers(round);
        let mut hashes = 0;
        let start = cpu_time();
        for _ in 0..COUNT {
            let index = numbers.below(HOUR);
            let subtree = if left.contains(index) { left } else { right };
            hashes += subtree.inclusion_proof(index, &tree).unwrap().len();
        }
        let spent = cpu_time() - start;
        let rate = f64::from(COUNT) / spent.as_secs_f64();
        let mean = hashes as f64 / f64::from(COUNT);
        println!("{round}: {rate:9.0} proofs/s of {mean:.1} hashes");
    }
}

fn verify() {
    const COUNT: u32 = 100_000;
    // A key of ML-DSA-44 is as many bytes to hash, whatever they are.
    let mut ml_dsa = vec![0x30, 0x82, 0x05, 0x32, 0x30, 0x0b, 6, 9];
    ml_dsa.extend([0x60, 0x86, 0x48, 1, 0x65, 3, 4, 3, 17]);
    ml_dsa.extend([3, 0x82, 0x05, 0x21, 0]);
    ml_dsa.resize(4 + 0x532, 7);
    for (name, key) in [("ecdsa-p256", made_up_key(1, 1)), ("ml-dsa-44", ml_dsa)] {
        let request = Request {
            names: &["example.com", "www.example.com"],
            key: &key,
            validity: Validity::of(NOW, WEEK),
        };
        let mut sample = Sample::new(log(), &request, 1_234_567, HOUR, 1).unwrap();
        sample.make_landmark(HOUR, NOW.after(WEEK)).unwrap();
        let certificate = sample.landmark_relative().unwrap();
        let mut authority = TrustedAuthority::new(log().ca().clone());
        for (subtree, hash) in sample.landmark_subtrees(1).unwrap() {
            authority.trust(LogNumber::FIRST, subtree, hash);
        }
        let mut client = RelyingParty::new();
        client.trust(authority);
        let start = cpu_time();
        for _ in 0..COUNT {
            client.verify(&certificate, NOW).unwrap();
        }
        let spent = (cpu_time() - start) / COUNT;
        let hashes = lastbyte_mtc::Certificate::parse(&certificate).unwrap();
        let hashes = hashes.proof.path.len();
        let bytes = certificate.len();
        println!("{name}: {spent:?} for {bytes} bytes with {hashes} hashes");
    }
}

fn durable() {
    const BATCH: u64 = 20_000;
    let target = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let folder = tempfile::tempdir_in(target).unwrap();
    let mut log = Log::open(log(), folder.path()).unwrap();
    let requests = requests(BATCH);
    for round in 0..10 {
        let start = Instant::now();
        let entries: Vec<Vec<u8>> = requests.iter().map(entry_of).collect();
        log.append(&entries).unwrap();
        let spent = start.elapsed();
        let rate = BATCH as f64 / spent.as_secs_f64();
        println!("{round}: {BATCH} entries in {spent:.3?}: {rate:.0} certificates/s");
    }
}

/// Gives the hashes of nothing: for counting.
struct Counting;

impl Nodes for Counting {
    type Error = std::convert::Infallible;

    fn node(&self, _level: u32, _index: u64) -> Result<HashValue, Self::Error> {
        Ok(HashValue([0; HashValue::BYTES]))
    }
}

/// Mean, least and most hashes of proofs in landmarks of `entries`, over places of landmarks in a log that is
/// as large as `log` and over entries.
fn lengths<N: Nodes<Error: std::fmt::Debug>>(
    nodes: &N,
    entries: u64,
    log: u64,
) -> (f64, usize, usize) {
    const LANDMARKS: u64 = 300;
    const OF_EACH: u64 = 300;
    let mut numbers = Numbers(entries);
    let (mut sum, mut least, mut most) = (0, usize::MAX, 0);
    for _ in 0..LANDMARKS {
        let start = numbers.below(log - entries + 1);
        let [left, right] = Subtree::cover(start..start + entries);
        for _ in 0..OF_EACH {
            let index = start + numbers.below(entries);
            let subtree = if left.contains(index) { left } else { right };
            let length = subtree.inclusion_proof(index, nodes).unwrap().len();
            sum += length;
            least = least.min(length);
            most = most.max(length);
        }
    }
    (sum as f64 / (LANDMARKS * OF_EACH) as f64, least, most)
}

fn sizes() {
    const REAL: u64 = 10_000_000;
    let tell = |kind, entries, (mean, least, most): (f64, usize, usize)| {
        let bytes = HashValue::BYTES;
        println!(
            "| {entries} | {kind} | {mean:.2} | {least} | {most} | {:.0} | {} |",
            mean * bytes as f64,
            most * bytes
        );
    };
    println!("| entries | | mean hashes | least | most | mean bytes | most bytes |");
    println!("|---|---|---|---|---|---|---|");
    let start = cpu_time();
    let real = tree(REAL);
    let spent = cpu_time() - start;
    for entries in [2_500, 10_000, 100_000, 1_000_000, HOUR, REAL] {
        tell("measured", entries, lengths(&real, entries, REAL));
    }
    for entries in [2_500, HOUR, REAL, 100_000_000, 1_000_000_000] {
        tell("arithmetic", entries, lengths(&Counting, entries, 1 << 40));
    }
    println!("\nthe tree of {REAL} entries took {spent:.1?} of one core");
}

/// A log as a whole: just the right edge is kept, and the hashes of landmarks.
fn replay() {
    const HOURS: u64 = 168;
    let start = cpu_time();
    let mut edge: Vec<Option<HashValue>> = Vec::new();
    let mut number = 0_u64;
    for hour in 1..=HOURS {
        for _ in 0..HOUR {
            let mut hash = HashValue::leaf([&number.to_be_bytes()[..]]);
            number += 1;
            for level in 0.. {
                if level == edge.len() {
                    edge.push(None);
                }
                match edge[level].take() {
                    Some(left) => hash = HashValue::node(&left, &hash),
                    None => {
                        edge[level] = Some(hash);
                        break;
                    }
                }
            }
        }
        if hour % 24 == 0 {
            let spent = cpu_time() - start;
            let state = 2 * HashValue::BYTES as u64 * hour;
            println!("{hour} hours: {number} entries in {spent:.0?}, a client holds {state} bytes");
        }
    }
    let root = edge
        .into_iter()
        .flatten()
        .reduce(|right, left| HashValue::node(&left, &right));
    println!("root {}", root.unwrap());
}
