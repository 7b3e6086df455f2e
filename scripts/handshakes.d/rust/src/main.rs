//! TLS 1.3 handshakes of rustls and of s2n-tls, each with itself, in memory and on one thread, as measure.py asks for them:
//!
//!     lastbyte-handshakes STACK FOLDER
//!
//! FOLDER has a folder of each chain, and of each client's. What rustls lacks on OpenSSL is Lastbyte's own.

use std::error::Error;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::time::Duration;
use std::{env, fs};

#[path = "../../../../crates/tls/src/rustls/provider/ml_dsa.rs"]
mod ml_dsa;
mod rustls_ends;
mod s2n_ends;
#[path = "../../../../crates/tls/src/rustls/provider/tickets.rs"]
mod tickets;

type Failed = Box<dyn Error>;

const SERVER_NAME: &str = "server.example";
const SUITE: &str = "TLS_AES_128_GCM_SHA256";
/// Before those that count, as in all programs.
const WARM_UP: Duration = Duration::from_millis(30);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mode {
    Full,
    Mutual,
    Resumed,
}

/// What is asked for.
struct Case {
    folder: PathBuf,
    group: String,
    chain: String,
    mode: Mode,
}

impl Case {
    fn file(&self, suffix: &str, name: &str) -> Result<Vec<u8>, Failed> {
        let path = self
            .folder
            .join(format!("{}{suffix}", self.chain))
            .join(name);
        fs::read(&path).map_err(|error| format!("{}: {error}", path.display()).into())
    }
}

/// Two ends, and the session that the client has.
trait Ends {
    /// What a handshake took of the client and of the server, from making a connection to freeing it.
    fn handshake(&mut self) -> Result<[Duration; 2], Failed>;
}

fn clock(clock: libc::clockid_t) -> Duration {
    let mut time = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: it writes one structure, which is there.
    unsafe { libc::clock_gettime(clock, &mut time) };
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

/// Runs `turn`, and adds what it took of this thread to `spent`.
fn timed<T>(spent: &mut Duration, turn: impl FnOnce() -> T) -> T {
    let begun = clock(libc::CLOCK_THREAD_CPUTIME_ID);
    let result = turn();
    *spent += clock(libc::CLOCK_THREAD_CPUTIME_ID).saturating_sub(begun);
    result
}

fn expect(
    suite: &str,
    group: &str,
    resumed: bool,
    case: (&str, Mode),
    first: bool,
) -> Result<(), Failed> {
    let (wanted, mode) = case;
    let well = suite == SUITE
        && group.eq_ignore_ascii_case(wanted)
        && resumed == (mode == Mode::Resumed && !first);
    let told = || format!("another handshake than asked for: {suite}, {group}, resumed: {resumed}");
    well.then_some(()).ok_or_else(|| told().into())
}

fn batch(ends: &mut dyn Ends, count: usize) -> Result<String, Failed> {
    let (process, thread) = (
        libc::CLOCK_PROCESS_CPUTIME_ID,
        libc::CLOCK_THREAD_CPUTIME_ID,
    );
    let begun = clock(thread);
    while clock(thread) - begun < WARM_UP {
        ends.handshake()?;
    }
    let begun = [clock(process), clock(thread)];
    let mut times = Vec::with_capacity(count);
    for _ in 0..count {
        times.push(ends.handshake()?);
    }
    let other = (clock(process) - begun[0]).saturating_sub(clock(thread) - begun[1]);
    let mut answer = other.as_nanos().to_string();
    for [client, server] in times {
        answer += &format!(" {},{}", client.as_nanos(), server.as_nanos());
    }
    Ok(answer)
}

fn answer(stack: &str, folder: &Path, line: &str) -> Result<String, Failed> {
    let words: Vec<&str> = line.split_whitespace().collect();
    let [group, chain, mode, count] = words[..] else {
        return Err(format!("not GROUP CHAIN MODE COUNT: {line}").into());
    };
    let mode = match mode {
        "full" => Mode::Full,
        "mutual" => Mode::Mutual,
        "resumed" => Mode::Resumed,
        other => return Err(format!("no mode {other}").into()),
    };
    let case = Case {
        folder: folder.to_owned(),
        group: group.to_owned(),
        chain: chain.to_owned(),
        mode,
    };
    let mut ends: Box<dyn Ends> = match stack {
        "s2n-tls" => Box::new(s2n_ends::S2n::new(&case)?),
        _ => Box::new(rustls_ends::Rustls::new(
            rustls_ends::provider(stack)?,
            &case,
        )?),
    };
    batch(ends.as_mut(), count.parse()?)
}

fn main() -> Result<(), Failed> {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let [stack, folder] = &arguments[..] else {
        return Err(
            "usage: lastbyte-handshakes rustls-aws-lc|rustls-openssl|s2n-tls FOLDER".into(),
        );
    };
    println!("{}", version(stack));
    for line in io::stdin().lines() {
        println!("{}", answer(stack, Path::new(folder), &line?)?);
        io::stdout().flush()?;
    }
    Ok(())
}

/// Of what the program is linked with; those of crates are in Cargo.lock.
fn version(stack: &str) -> &'static str {
    match stack {
        "rustls-openssl" => openssl::version::version()
            .split(' ')
            .nth(1)
            .unwrap_or_default(),
        _ => "",
    }
}
