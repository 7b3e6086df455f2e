//! An emulated network link as pure state.
//!
//! A [`Pipe`] is one direction of one connection's private [`Link`]. It is
//! reported when a packet comes and answers what becomes of it, as Linux's
//! `sch_netem` would: delay, [jitter](Distribution), [loss](Loss), rate or
//! [trace](Trace), and queue. It
//! reads no clock and owns no socket, so the same code serves in real time, in
//! virtual time and in arithmetic.
//!
//! Nothing here is random. What happens to a packet is a function of the study's
//! [`Seed`], the index of its connection, its direction and its [`PacketKey`]:
//! never of when it comes, or after which others. So connection 17 meets the
//! same [`Luck`] in every arm of a comparison, and in every repetition. Only loss in
//! [bursts](Loss::GilbertElliott) has a memory of the packets before.
//!
//! ```
//! use std::time::Duration;
//! use lastbyte_link::{Direction, Fate, Link, PacketKey, Pipe, Seed, Time, Side};
//!
//! let link = Link::symmetric(
//!     Duration::from_millis(35),
//!     Direction { rate: Some("1mbit".parse()?), ..Direction::default() },
//! );
//! let mut forward = Pipe::new(&link.forward, Seed(1).luck(17, Side::Server));
//! // 1236 + 14 bytes take 10 ms at 1 Mbit/s.
//! let fate = forward.send(Time(0), 1236, PacketKey::segment(0, 1, 0));
//! assert_eq!(fate, Fate::Arrives(Time(27_500_000)));
//! # Ok::<(), lastbyte_link::UnitError>(())
//! ```

mod bottleneck;
pub mod cellular;
mod distribution;
mod fate;
mod loss;
mod luck;
mod names;
mod pipe;
pub mod qdisc;
mod table;
mod tcp;
mod time;
mod trace;
pub mod units;

pub use distribution::Distribution;
pub use fate::{ETHERNET_HEADER, EcnCodepoint, Fate, Left, Packet};
pub use loss::{BurstLength, Loss};
pub use luck::{Luck, PacketKey, Seed, Side, fraction, mix};
pub use names::{UnknownName, is_hidden, nearest, shell_word, visible};
pub use pipe::{Direction, Link, Order, Pipe};
pub use qdisc::Qdisc;
pub use table::{Table, TableError};
pub use tcp::{KeyMaker, TcpPacket, UdpPacket};
pub use time::Time;
pub use trace::{Passes, Trace, TraceError};
pub use units::{
    Bytes, Probability, Rate, UnitError, counted, format_duration, parse_duration, parse_lifetime,
};
