//! How fast all happens, and by what means.

use std::ops::Range;
use std::time::Duration;

const MINUTE: Duration = Duration::from_secs(60);
const HOUR: Duration = Duration::from_secs(3600);
const DAY: Duration = Duration::from_secs(24 * 3600);

/// What differs between real and virtual time.
pub(crate) struct Pace {
    /// How long resolvers may keep records. `ad serve` adds a minute.
    pub(crate) ttl: Duration,
    /// How long a certificate is good for.
    pub(crate) life: Duration,
    pub(crate) between_faults: Range<Duration>,
    /// From one connection of a client to its next one.
    pub(crate) between_connections: Range<Duration>,
    /// How often clients rest, and memory and descriptors are looked at.
    pub(crate) check: Duration,
    /// Whether the time of day may be set: nobody else reads this clock.
    pub(crate) clocks_step: bool,
    /// Commands that have the link lose packets, and not any more.
    pub(crate) lossy_link: [&'static str; 2],
    /// Commands that have it take its time, and not any more.
    pub(crate) slow_link: [&'static str; 2],
    /// What some connection must come to, or the run shows nothing.
    pub(crate) must_happen: &'static [&'static str],
}

/// As much as the machine can do.
pub(crate) const REAL: Pace = Pace {
    ttl: Duration::from_secs(3),
    life: DAY.saturating_mul(90),
    between_faults: Duration::from_millis(100)..Duration::from_millis(900),
    between_connections: Duration::ZERO..Duration::from_millis(30),
    check: Duration::from_secs(20),
    clocks_step: false,
    lossy_link: [
        "iptables -A INPUT -i lo -p tcp -m statistic --mode random --probability 0.02 -j DROP",
        "iptables -D INPUT -i lo -p tcp -m statistic --mode random --probability 0.02 -j DROP",
    ],
    slow_link: [
        "tc qdisc add dev lo root tbf rate 20mbit burst 64kbit latency 100ms",
        "tc qdisc del dev lo root",
    ],
    must_happen: &["used", "no-record"],
};

/// As in a place with few users, whose certificates are short-lived. The virtual engine's kernel has netem, and no other
/// queues or filters.
pub(crate) const VIRTUAL: Pace = Pace {
    ttl: MINUTE.saturating_mul(10),
    life: DAY.saturating_mul(2),
    between_faults: MINUTE..MINUTE.saturating_mul(20),
    between_connections: Duration::ZERO..MINUTE.saturating_mul(10),
    check: HOUR,
    clocks_step: true,
    lossy_link: [
        "tc qdisc add dev lo root netem loss 2% limit 10000",
        "tc qdisc del dev lo root",
    ],
    slow_link: [
        "tc qdisc add dev lo root netem rate 20mbit limit 10000",
        "tc qdisc del dev lo root",
    ],
    must_happen: &["used", "no-record", "expired", "not yet valid"],
};
