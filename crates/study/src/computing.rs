//! What other people's programs compute in virtual time: named profiles, so that rows are the same on every machine.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use lastbyte_link::named;
use serde::{Deserialize, Serialize};
use thiserror::Error;

use super::{CpuTime, Server};

/// What a process takes virtual time for. Between two of these it computes, and that goes along with them: a call of a
/// browser stands for what its thread has done since the one before.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Costs {
    /// Each system call.
    pub call: Duration,
    /// Each page of memory that it touches first.
    pub page: Duration,
    /// Each time that another thread has run before.
    pub switch: Duration,
    /// Each read that has brought something: what is done with a message.
    pub input: Duration,
    /// Each read of the clock, so that a loop that waits for it ends.
    pub clock: Duration,
}

impl Costs {
    /// The same where all takes so many times as long.
    #[must_use]
    pub fn slowed(self, times: u32) -> Costs {
        let Costs {
            call,
            page,
            switch,
            input,
            clock,
        } = self;
        let slowed = |cost: Duration| cost.saturating_mul(times);
        Costs {
            call: slowed(call),
            page: slowed(page),
            switch: slowed(switch),
            input: slowed(input),
            clock: slowed(clock),
        }
    }

    /// All of them.
    pub fn all(self) -> [Duration; 5] {
        [self.call, self.page, self.switch, self.input, self.clock]
    }
}

/// What a profile has the browser run on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Device {
    /// A laptop of 2024.
    Laptop,
    /// A middling phone.
    Phone,
}

named!(Device, "device", { Laptop => "laptop", Phone => "phone" });

/// How much time a program's computing takes, and how that varies.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Profile {
    /// Which.
    pub device: Device,
    /// How many times longer a browser computes than on a laptop.
    pub times: u32,
    /// Of a browser's processes, of which one runs at a time.
    pub browser: Costs,
    /// Of a server's.
    pub server: Costs,
    /// So many charges of a kind in a row are dearer or cheaper alike,
    pub run: u32,
    /// by up to so many thousandths.
    pub spread: u32,
    /// A navigation, or a connection, is this many times slower than the profile at most, and as many times quicker:
    /// evenly drawn in between, by its logarithm.
    pub pace: f64,
}

/// A browser on a laptop. Fitted to first paints and loads of Chromium in real time (docs/benchmarks/page-loads.md).
const LAPTOP: Costs = Costs {
    call: micros(8),
    page: micros(7),
    switch: micros(8),
    input: Duration::ZERO,
    clock: CLOCK,
};

/// A server, whatever the browser runs on.
const SERVER: Costs = Costs {
    call: micros(8),
    page: micros(3),
    switch: micros(50),
    input: Duration::ZERO,
    clock: CLOCK,
};

/// A read of the clock without a system call.
const CLOCK: Duration = Duration::from_nanos(25);

/// How many times slower a middling phone is than a laptop: what Lighthouse supposes of one
/// (`cpuSlowdownMultiplier` of its mobile throttling).
const PHONE: u32 = 4;

/// How many times longer a client computes than the machine that measured what computing takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ClientCpu(u32);

impl ClientCpu {
    /// As long.
    pub const THIS: ClientCpu = ClientCpu(1);
    /// The most times.
    pub const MOST: u32 = 1000;
    /// Those that have names.
    ///
    /// `phone` is what pages are loaded on (Lighthouse's factor). `iot` is a Cortex-M4 of 120 MHz: three verifications
    /// with ML-DSA-65 and both halves of ML-KEM-768 take it 8.6 million cycles (pqm4, June 2026: 2,415,944 each, 642,096 and
    /// 707,827), 72 ms, and all of a client's handshake with one intermediate takes OpenSSL 1.4 ms (docs/benchmarks/stacks.md).
    const NAMED: [(&str, ClientCpu); 3] = [
        ("this", ClientCpu::THIS),
        ("phone", ClientCpu(PHONE)),
        ("iot", ClientCpu(50)),
    ];

    /// The factor.
    #[must_use]
    pub fn times(self) -> u32 {
        self.0
    }
}

impl Default for ClientCpu {
    fn default() -> ClientCpu {
        ClientCpu::THIS
    }
}

impl fmt::Display for ClientCpu {
    /// Its name, or `8x`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut named = ClientCpu::NAMED.iter();
        match named.find(|(_, cpu)| cpu == self) {
            Some((name, _)) => f.pad(name),
            None => f.pad(&format!("{}x", self.0)),
        }
    }
}

/// A text is no [`ClientCpu`].
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("no client's CPU {0:?}: write this, phone, iot, or how many times longer it takes, such as 8x (1x to {most}x)", most = ClientCpu::MOST)]
pub struct UnknownClientCpu(String);

impl FromStr for ClientCpu {
    type Err = UnknownClientCpu;

    fn from_str(text: &str) -> Result<ClientCpu, UnknownClientCpu> {
        let mut named = ClientCpu::NAMED.iter();
        if let Some((_, cpu)) = named.find(|(name, _)| *name == text) {
            return Ok(*cpu);
        }
        let times = text.strip_suffix('x').and_then(|times| times.parse().ok());
        let times = times.filter(|times| (1..=ClientCpu::MOST).contains(times));
        let unknown = || UnknownClientCpu(text.to_owned());
        times.map(ClientCpu).ok_or_else(unknown)
    }
}

const fn micros(micros: u64) -> Duration {
    Duration::from_micros(micros)
}

impl CpuTime {
    /// What programs take that people run, with this server and a browser that many times slower; none where they take nothing,
    /// and none of Lastbyte's own ends.
    pub fn profile(self, server: Server, slowdown: u32) -> Option<Profile> {
        let (device, times) = match self {
            CpuTime::None | CpuTime::Beside | CpuTime::Calibrated => return None,
            CpuTime::Laptop => (Device::Laptop, 1),
            CpuTime::Phone => (Device::Phone, PHONE),
        };
        // JavaScript takes longer from a request to its answer than what was compiled.
        let input = match server {
            Server::Lastbyte => return None,
            Server::Node => micros(750),
            Server::Nginx
            | Server::Go
            | Server::Caddy
            | Server::QuicGo
            | Server::S2nQuic
            | Server::Quiche => micros(150),
        };
        let times = times * slowdown;
        Some(Profile {
            device,
            times,
            browser: LAPTOP.slowed(times),
            server: Costs { input, ..SERVER },
            run: 16,
            spread: 900,
            pace: 1.4,
        })
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn a_phone_is_a_laptop_that_is_slower() {
        let laptop = CpuTime::Laptop.profile(Server::Node, 4).unwrap();
        let phone = CpuTime::Phone.profile(Server::Node, 1).unwrap();
        assert_eq!(
            Profile {
                device: Device::Phone,
                ..laptop
            },
            phone
        );
        // Whatever the browser runs on, the server is the same.
        let usual = CpuTime::Laptop.profile(Server::Node, 1).unwrap();
        assert_eq!(usual.server, phone.server);
        assert_eq!(usual.browser.slowed(4), phone.browser);
    }

    #[test]
    fn a_clients_cpu_is_a_name_or_a_factor() {
        for (text, times, written) in [
            ("this", 1, "this"),
            ("1x", 1, "this"),
            ("phone", 4, "phone"),
            ("4x", 4, "phone"),
            ("iot", 50, "iot"),
            ("8x", 8, "8x"),
            ("1000x", 1000, "1000x"),
        ] {
            let cpu: ClientCpu = text.parse().unwrap();
            assert_eq!((cpu.times(), cpu.to_string().as_str()), (times, written));
        }
        for text in ["", "8", "0x", "1001x", "x", "-1x", "fast", "99999999999x"] {
            let problem = text.parse::<ClientCpu>().unwrap_err().to_string();
            assert!(problem.contains("write this, phone, iot"), "{problem}");
        }
    }

    #[test]
    fn profiles_are_of_programs_that_people_run() {
        assert_eq!(CpuTime::Laptop.profile(Server::Lastbyte, 1), None);
        for cpu in [CpuTime::None, CpuTime::Beside, CpuTime::Calibrated] {
            assert_eq!(cpu.profile(Server::Node, 1), None);
        }
    }

    #[test]
    fn no_cost_is_longer_than_a_kernel_can_read() {
        let slowest = CpuTime::Phone.profile(Server::Node, 20).unwrap();
        for cost in slowest
            .browser
            .all()
            .into_iter()
            .chain(slowest.server.all())
        {
            assert!(cost.as_nanos() < 1 << 31, "{cost:?}");
        }
    }
}
