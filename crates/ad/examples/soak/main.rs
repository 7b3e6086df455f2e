//! Runs `lastbyte ad serve` with name servers, a publisher, a backend and clients, breaks one of them after the other,
//! and says whether every connection ended verified or refused. scripts/soak starts it, in a network of its own:
//!
//!     soak PROGRAM FOLDER SECONDS SEED
//!
//! The folder is on a small file system, which is filled now and then. What happens when depends on the seed; how it ends
//! depends on the machine, too.

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

/// How long resolvers may keep records. `ad serve` adds a minute.
const TTL: Duration = Duration::from_secs(3);

/// How often clients rest, and memory and descriptors are looked at.
const CHECK: Duration = Duration::from_secs(20);

fn main() -> ExitCode {
    let arguments: Vec<_> = env::args().skip(1).collect();
    let [program, folder, seconds, seed] = &arguments[..] else {
        eprintln!("usage: soak PROGRAM FOLDER SECONDS SEED");
        return ExitCode::from(2);
    };
    let length = Duration::from_secs(seconds.parse().unwrap());
    let luck = Luck(seed.parse().unwrap());
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build();
    let (program, folder) = (PathBuf::from(program), PathBuf::from(folder));
    let verdict = runtime
        .unwrap()
        .block_on(soak(program, folder, length, luck));
    println!("{verdict}");
    match verdict.failures().is_empty() {
        true => ExitCode::SUCCESS,
        false => ExitCode::FAILURE,
    }
}

async fn soak(program: PathBuf, folder: PathBuf, length: Duration, mut luck: Luck) -> Verdict {
    let verdict = Arc::new(Verdict::default());
    let mut servers = Servers::start(program, folder, Arc::clone(&verdict)).await;
    let _impostor = Impostor::start().await;
    let clients = Clients::start(&servers, &mut luck, Arc::clone(&verdict));
    let end = Instant::now() + length;
    let mut check = Instant::now() + CHECK.min(length / 4);
    let mut deck = Vec::new();
    while Instant::now() < end {
        // Every fault has its turn before one comes again.
        if deck.is_empty() {
            deck = Fault::ALL.to_vec();
        }
        let fault = deck.swap_remove(luck.below(deck.len()));
        servers.suffer(fault, &mut luck).await;
        sleep(luck.between(100, 900)).await;
        if Instant::now() >= check {
            check = Instant::now() + CHECK.min(length / 4);
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

    /// Milliseconds.
    fn between(&mut self, least: u64, most: u64) -> Duration {
        Duration::from_millis(least + self.next() % (most - least))
    }
}
