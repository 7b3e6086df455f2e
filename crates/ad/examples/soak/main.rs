//! Runs `lastbyte ad serve` with name servers, a publisher, a backend and clients, breaks one of them after the other,
//! and says whether every connection ended verified or refused. scripts/soak starts it, in a network of its own:
//!
//!     soak PROGRAM FOLDER SECONDS SEED real|virtual
//!
//! The folder has one for the state on a small file system, which is filled now and then. What happens when depends on the
//! seed; how it ends depends on the machine, too. In a virtual machine whose time is virtual, seconds are days of few
//! connections, and the clock steps.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

mod clients;
mod servers;
mod verdict;

use std::env;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::{Instant, sleep};

use crate::clients::{Clients, Impostor};
use crate::servers::{Fault, Servers};
use crate::verdict::{Checkpoint, Verdict};

/// A name that all chains are for.
const NAME: &str = "server.example";

/// What clients connect to; DNS says so.
const SERVER: &str = "127.0.0.9:443";

/// How fast all goes. Times are of no clock.
#[derive(Clone, Copy, Debug)]
struct Pace {
    /// How long resolvers may keep records. `ad serve` adds a minute.
    ttl: Duration,
    /// From one fault to the next one.
    faults: Between,
    /// From a client's connection to its next one.
    connections: Between,
    /// How often clients rest, and memory and descriptors are looked at.
    check: Duration,
    world: World,
}

/// The least and the most.
type Between = (Duration, Duration);

/// Whose time it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum World {
    /// The machine's, which others use, too.
    Real,
    /// One that this has for itself, where nothing is lost by waiting.
    Virtual,
}

const REAL: Pace = Pace {
    ttl: Duration::from_secs(3),
    faults: (Duration::from_millis(100), Duration::from_millis(900)),
    connections: (Duration::ZERO, Duration::from_millis(30)),
    check: Duration::from_secs(20),
    world: World::Real,
};

const VIRTUAL: Pace = Pace {
    ttl: Duration::from_secs(3600),
    faults: (Duration::from_secs(60), Duration::from_secs(1800)),
    connections: (Duration::from_secs(1), Duration::from_secs(300)),
    check: Duration::from_secs(2 * 3600),
    world: World::Virtual,
};

fn main() -> ExitCode {
    let arguments: Vec<_> = env::args().skip(1).collect();
    let [program, folder, seconds, seed, pace] = &arguments[..] else {
        eprintln!("usage: soak PROGRAM FOLDER SECONDS SEED real|virtual");
        return ExitCode::from(2);
    };
    let pace = match pace.as_str() {
        "virtual" => VIRTUAL,
        _ => REAL,
    };
    let length = Duration::from_secs(seconds.parse().unwrap());
    let luck = Luck(seed.parse().unwrap());
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build();
    let (program, folder) = (PathBuf::from(program), PathBuf::from(folder));
    let verdict = runtime
        .unwrap()
        .block_on(soak(program, folder, length, luck, pace));
    println!("{verdict}");
    match verdict.failures().is_empty() {
        true => ExitCode::SUCCESS,
        false => ExitCode::FAILURE,
    }
}

async fn soak(
    program: PathBuf,
    folder: PathBuf,
    length: Duration,
    mut luck: Luck,
    pace: Pace,
) -> Verdict {
    let verdict = Arc::new(Verdict::default());
    let mut servers = Servers::start(program, folder, Arc::clone(&verdict), pace).await;
    let _impostor = Impostor::start().await;
    let clients = Clients::start(&servers, &mut luck, Arc::clone(&verdict), pace);
    let end = Instant::now() + length;
    let mut check = Instant::now() + pace.check.min(length / 4);
    let mut deck = Vec::new();
    while Instant::now() < end {
        // Every fault has its turn before one comes again.
        if deck.is_empty() {
            deck = Fault::of(pace.world);
        }
        let fault = deck.swap_remove(luck.below(deck.len()));
        servers.suffer(fault, &mut luck).await;
        sleep(luck.from(pace.faults)).await;
        if Instant::now() >= check {
            check = Instant::now() + pace.check.min(length / 4);
            clients.rest().await;
            verdict.check(Checkpoint::of("ad serve", servers.process()));
            verdict.check(Checkpoint::of("ad publish", servers.publisher()));
            clients.go_on();
        }
    }
    clients.stop().await;
    servers.end().await;
    drop(servers);
    Arc::try_unwrap(verdict).unwrap_or_else(|_| panic!("something still runs"))
}

/// Numbers that depend on a seed alone (SplitMix64).
struct Luck(u64);

impl Luck {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    fn below(&mut self, most: usize) -> usize {
        usize::try_from(self.next() % most as u64).unwrap()
    }

    fn from(&mut self, (least, most): Between) -> Duration {
        let milliseconds = |time: Duration| u64::try_from(time.as_millis()).unwrap();
        self.between(milliseconds(least), milliseconds(most))
    }

    /// Milliseconds.
    fn between(&mut self, least: u64, most: u64) -> Duration {
        Duration::from_millis(least + self.next() % (most - least))
    }
}
