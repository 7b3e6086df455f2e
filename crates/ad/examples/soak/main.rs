//! Runs `lastbyte ad serve` with name servers, a publisher, a backend and clients, breaks one of
//! them after the other, and says whether every connection ended verified or refused. scripts/soak
//! starts it, in a network of its own:
//!
//!     soak real|virtual PROGRAM FOLDER SECONDS SEED
//!
//! The folder is on a small file system, which is filled now and then. What happens when depends on
//! the seed; how it ends depends on the machine, too. In virtual time, in a kernel of its own,
//! clocks step besides, and all happens as slowly as it does elsewhere, as waiting is free there.
//! `soak off` ends that kernel.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

mod clients;
mod clock;
mod pace;
mod servers;
mod verdict;

use std::env;
use std::ops::Range;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::{Instant, sleep};

use crate::clients::{Clients, Impostor};
use crate::pace::Pace;
use crate::servers::{Fault, Servers};
use crate::verdict::{Checkpoint, Verdict};

/// A name that all chains are for.
const NAME: &str = "server.example";

/// What clients connect to; DNS says so.
const SERVER: &str = "127.0.0.9:443";

fn main() -> ExitCode {
    let arguments: Vec<_> = env::args().skip(1).collect();
    if arguments == ["off"] {
        clock::end_kernel();
    }
    let (pace, [program, folder, seconds, seed]) = match &arguments[..] {
        [time, rest @ ..] if time == "real" && rest.len() == 4 => {
            (&pace::REAL, [0, 1, 2, 3].map(|at| &rest[at]))
        }
        [time, rest @ ..] if time == "virtual" && rest.len() == 4 => {
            (&pace::VIRTUAL, [0, 1, 2, 3].map(|at| &rest[at]))
        }
        _ => {
            eprintln!("usage: soak real|virtual PROGRAM FOLDER SECONDS SEED");
            return ExitCode::from(2);
        }
    };
    let length = Duration::from_secs(seconds.parse().unwrap());
    let luck = Luck(seed.parse().unwrap());
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build();
    let (program, folder) = (PathBuf::from(program), PathBuf::from(folder));
    let verdict = runtime
        .unwrap()
        .block_on(soak(pace, program, folder, length, luck));
    println!("{verdict}");
    if verdict.failures().is_empty() {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}

async fn soak(
    pace: &'static Pace,
    program: PathBuf,
    folder: PathBuf,
    length: Duration,
    mut luck: Luck,
) -> Verdict {
    let verdict = Arc::new(Verdict::new(pace.must_happen));
    let mut servers = Servers::start(pace, program, folder, Arc::clone(&verdict)).await;
    let _impostor = Impostor::start().await;
    let clients = Clients::start(pace, &servers, &mut luck, Arc::clone(&verdict));
    let end = Instant::now() + length;
    let check_every = pace.check.min(length / 4);
    let mut check = Instant::now() + check_every;
    let faults = Fault::ALL.into_iter();
    let faults: Vec<_> = faults
        .filter(|fault| pace.clocks_step || !fault.steps_clocks())
        .collect();
    // A short run has what no other run has.
    let mut deck = faults.clone();
    deck.retain(|fault| fault.steps_clocks());
    while Instant::now() < end {
        // Every fault has its turn before one comes again.
        if deck.is_empty() {
            deck.clone_from(&faults);
        }
        let fault = deck.swap_remove(luck.below(deck.len()));
        servers.suffer(fault, &mut luck).await;
        sleep(luck.within(&pace.between_faults)).await;
        if Instant::now() >= check {
            check = Instant::now() + check_every;
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

    fn within(&mut self, range: &Range<Duration>) -> Duration {
        let milliseconds = |time: Duration| u64::try_from(time.as_millis()).unwrap();
        self.between(milliseconds(range.start), milliseconds(range.end))
    }

    /// Milliseconds.
    fn between(&mut self, least: u64, most: u64) -> Duration {
        Duration::from_millis(least + self.next() % (most - least))
    }
}
