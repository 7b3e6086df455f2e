//! What the text of a value can't be: of a parameter, of a key of an arm, of one of a delivery.

use std::io;
use std::num::ParseIntError;
use std::str::FromStr;

use lastbyte_link::{Bytes, UnitError, UnknownName, nearest};
use lastbyte_page::Named;
use lastbyte_page::har::HarError;
use lastbyte_sizes::UnknownGroup;
use thiserror::Error;

use super::TrafficError;
use super::distribution::DistributionError;
use super::trace::TraceFileError;

/// Why a text is not the value that it should be, with what it can be.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum ValueError {
    /// It is none of the names that there are.
    #[error("{}", nearest(text, known.iter().copied()))]
    Unlisted {
        /// The text.
        text: String,
        /// The names.
        known: Vec<&'static str>,
    },
    /// It is no group.
    #[error(transparent)]
    Group(UnknownGroup),
    /// It is no size.
    #[error(transparent)]
    Size(#[from] SizeError),
    /// It is no whole number within these.
    #[error("use {least} to {most}")]
    Whole {
        /// The smallest that is possible.
        least: u32,
        /// The greatest that is possible.
        most: u32,
    },
    /// It is no payload of a record.
    #[error("use 1 to {most} bytes, or auto")]
    RecordSize {
        /// The largest that TLS has.
        most: u16,
    },
    /// It is no part of a ClientHello.
    #[error("use 1B to {most}B")]
    HelloSplit {
        /// The largest.
        most: u16,
    },
    /// It is no share.
    #[error("write a share from 0% to 100%")]
    Share,
    /// It is no time.
    #[error("use a time such as 1ms")]
    Time,
    /// It is longer than the other side waits.
    #[error("use 0ms to 5s")]
    ResolverRtt,
    /// There is no path.
    #[error("name a PEM file")]
    NoFile,
    /// A list has something twice.
    #[error("name {0} once")]
    Twice(&'static str),
    /// A list is parted by commas.
    #[error("write several as {}", text.replace(',', "+"))]
    Commas {
        /// The list.
        text: String,
    },
    /// It is no compression.
    #[error("{}", .0.hint)]
    Compression(lastbyte_sizes::UnknownCompression),
    /// They are no cosigners.
    #[error("name ca, chrome, apple, or a number from 1 to {most}")]
    Cosigners {
        /// How many there can be.
        most: u8,
    },
    /// It is no number of entries.
    #[error("use 1 to {most}, without a unit")]
    Entries {
        /// How many there can be.
        most: u32,
    },
}

/// Why a text is no size.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum SizeError {
    /// Its number stands alone.
    #[error("missing unit in size {0:?}: did you mean \"{0}B\"?")]
    NoUnit(String),
    /// It is no number with a unit.
    #[error(transparent)]
    Unit(#[from] UnitError),
}

/// Why a text is no value of a parameter.
#[derive(Debug, Error)]
pub enum ParameterError {
    /// It is no quantity in its unit.
    #[error(transparent)]
    Unit(#[from] UnitError),
    /// It is none of the names that there are.
    #[error(transparent)]
    Name(#[from] UnknownName),
    /// It is no number.
    #[error(transparent)]
    Number(#[from] ParseIntError),
    /// It names no distribution of jitter.
    #[error(transparent)]
    Distribution(#[from] DistributionError),
    /// It names no rate trace.
    #[error(transparent)]
    Trace(#[from] TraceFileError),
    /// It names no traffic.
    #[error(transparent)]
    Traffic(#[from] TrafficError),
    /// Hosts can't be set so.
    #[error(transparent)]
    Hosts(#[from] HostsError),
    /// It is no factor of computing.
    #[error(transparent)]
    ClientCpu(#[from] super::UnknownClientCpu),
    /// Nothing else is on a link so.
    #[error(transparent)]
    Crowd(#[from] CrowdError),
    /// There is no such page.
    #[error(transparent)]
    Page(#[from] PageError),
    /// It is no count of anything.
    #[error("{0:?} is no whole number: write one such as 10")]
    NotWhole(String),
    /// It is smaller or larger than the parameter can be.
    #[error("{parameter:?} can't be {text}: use {least} to {most}")]
    Range {
        /// The parameter.
        parameter: &'static str,
        /// The text.
        text: String,
        /// The smallest that is possible.
        least: String,
        /// The greatest that is possible.
        most: String,
    },
}

/// Why a text is no cross traffic.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum CrowdError {
    /// It names no congestion control, or no direction.
    #[error(transparent)]
    Name(#[from] UnknownName),
    /// It is no transfer.
    #[error(
        "no bulk transfer {0:?}: write one such as cubic, \"2 cubic+bbr\" or \"cubic up\", or none"
    )]
    NoFlow(String),
    /// There are none of one, or more than sockets are opened for.
    #[error(
        "no such number of bulk transfers: write 1 to {} in all",
        super::CrossTraffic::MOST
    )]
    TooMany,
}

/// Why hosts can't be set as a text says.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum HostsError {
    /// It is no MTU.
    #[error("no MTU {text:?}: write bytes from {least} to {most}, such as 1500")]
    Mtu {
        /// The text.
        text: String,
        /// The smallest that is possible.
        least: u16,
        /// The greatest that is possible.
        most: u16,
    },
    /// It is no receive buffer.
    #[error(
        "no receive buffer {text:?}: write unset, or a size from {least} to {most} (net.core.rmem_max), such as 64KiB"
    )]
    ReceiveBuffer {
        /// The text.
        text: String,
        /// The smallest that is possible.
        least: Bytes,
        /// The greatest that is possible.
        most: Bytes,
    },
    /// Something in it is the size of no write.
    #[error(
        "no write of {size:?}: write whole, or 1 to {count} sizes of 1B to {most}B, such as 17B+8087B"
    )]
    Write {
        /// What stands there.
        size: String,
        /// How many sizes there can be.
        count: usize,
        /// The greatest that is possible.
        most: u16,
    },
    /// It has more sizes than there can be.
    #[error(
        "too many writes in {text:?}: write whole, or 1 to {count} sizes of 1B to {most}B, such as 17B+8087B"
    )]
    TooManyWrites {
        /// The text.
        text: String,
        /// How many sizes there can be.
        count: usize,
        /// The greatest that is possible.
        most: u16,
    },
}

/// Why there is no such page.
#[derive(Debug, Error)]
pub enum PageError {
    /// The HAR can't be read.
    #[error("can't read {named:?}: {error}")]
    Unreadable {
        /// As the study names it.
        named: String,
        /// Why not.
        error: io::Error,
    },
    /// There is no page in the HAR.
    #[error("{named:?}: {error}")]
    Har {
        /// As the study names it.
        named: String,
        /// Why not.
        error: HarError,
    },
    /// It is an address.
    #[error(
        "{0:?} is an address, and nothing is fetched from there: record the page as a HAR in your browser's \
         developer tools, and name that file (docs/page-loads.md)"
    )]
    Address(String),
    /// It is neither a model nor a HAR.
    #[error(
        "there is no page {text:?}, and no file that ends in {ending}: {}",
        nearest(text, Named::ALL.map(Named::name))
    )]
    Unknown {
        /// The text.
        text: String,
        /// How names of HARs end.
        ending: &'static str,
    },
    /// The model makes none.
    #[error(transparent)]
    Model(#[from] lastbyte_page::PageError),
    /// A HAR has its own origins.
    #[error(
        "{origins} origins are for a model, and {named} says itself which it has: leave origins out"
    )]
    Origins {
        /// How many were asked for.
        origins: u32,
        /// The HAR, as the study names it.
        named: String,
    },
}

/// Reads one of the names that there are.
pub(super) fn one_of<T: FromStr>(
    text: &str,
    known: impl IntoIterator<Item = &'static str>,
) -> Result<T, ValueError> {
    text.parse().map_err(|_| ValueError::Unlisted {
        text: text.to_owned(),
        known: known.into_iter().collect(),
    })
}

/// Reads a whole number within these.
pub(super) fn whole<T>(text: &str, least: T, most: T) -> Result<T, ValueError>
where
    T: Copy + FromStr + Into<u32> + PartialOrd,
{
    let number = text.parse().ok();
    let number = number.filter(|number| (least..=most).contains(number));
    number.ok_or_else(|| ValueError::Whole {
        least: least.into(),
        most: most.into(),
    })
}
