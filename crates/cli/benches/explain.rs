//! How long `lastbyte explain` takes as a whole process: `cargo bench -p lastbyte-cli --bench explain`. It should
//! stay below 50 ms.

use std::io;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

const ROUNDS: usize = 51;

fn main() -> io::Result<()> {
    let arms = [
        "x25519/ecdsa-p256",
        "SecP256r1MLKEM768/ml-dsa-65",
        "MLKEM1024/slh-dsa-sha2-256f",
    ];
    let mut times: Vec<Duration> = Vec::new();
    for _ in 0..ROUNDS {
        let start = Instant::now();
        Command::new(env!("CARGO_BIN_EXE_lastbyte"))
            .arg("explain")
            .args(arms)
            .args(["--rtt", "5ms,35ms,250ms", "--initcwnd", "10,20,32"])
            .stdout(Stdio::null())
            .status()?;
        times.push(start.elapsed());
    }
    times.sort_unstable();
    let at = |place: usize| {
        times
            .get(place)
            .map_or(0.0, |time| time.as_secs_f64() * 1e3)
    };
    println!(
        "explain, 3 arms over 27 cells: median {:.1} ms, slowest {:.1} ms of {ROUNDS} processes",
        at(ROUNDS / 2),
        at(ROUNDS - 1)
    );
    Ok(())
}
