//! Which share of the chains that servers have need how many flights: what an edge decides for a whole fleet.

use std::collections::BTreeMap;

use lastbyte_exchange::Exchange;
use lastbyte_sizes::{Message, framing};
use lastbyte_study::table_file::{TableError, rows};
use lastbyte_study::{Arm, Cell, Delivery};
use thiserror::Error;

use super::{Explanation, flights, wire};

/// How many chains have Certificate messages of which size.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChainSizes {
    /// What the table is called in messages: its file.
    pub file: String,
    /// By the bytes of the Certificate message with its 4-byte header.
    sizes: BTreeMap<usize, u64>,
}

/// Which of a table's chains need how many flights.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChainShares {
    /// What the table is called: its file.
    pub file: String,
    /// All of its chains.
    pub chains: u64,
    /// By the number of flights, for each of an explanation's windows.
    pub windows: Vec<Vec<ChainShare>>,
}

/// How many chains need so many flights of the server's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ChainShare {
    /// The server's flights until the handshake is done.
    pub flights: usize,
    /// Chains.
    pub chains: u64,
}

/// A table of chains can't be read.
#[derive(Debug, Error)]
pub enum ChainSizesError {
    /// It is no table.
    #[error("{file}: {error}")]
    Table {
        /// What it is called.
        file: String,
        /// Why.
        #[source]
        error: TableError,
    },
    /// It has no sizes.
    #[error(
        "{file}: there is no column {CERTIFICATE}, or {CHAIN} and {CERTIFICATES}: write the bytes of Certificate messages, \
         or of all certificates in DER and how many there are"
    )]
    NoSize {
        /// What it is called.
        file: String,
    },
    /// Two columns have one name.
    #[error("{file}: there are two columns {column}")]
    Twice {
        /// What it is called.
        file: String,
        /// The name.
        column: &'static str,
    },
    /// A cell is no number of what it has to be.
    #[error("{file}: line {line}: {cell:?} is no {column} from {least} to {most}")]
    Cell {
        /// What it is called.
        file: String,
        /// From 1.
        line: u64,
        /// What it says.
        cell: String,
        /// Its column.
        column: &'static str,
        /// The least that there can be.
        least: u64,
        /// The most.
        most: u64,
    },
    /// It counts no chain.
    #[error("{file}: there is no chain in it")]
    Empty {
        /// What it is called.
        file: String,
    },
    /// The sizes of Certificate messages decide nothing for an arm.
    #[error(
        "arm {arm:?}: {what}, so the sizes of {file} are not what it sends: leave --chain-sizes out"
    )]
    NotSent {
        /// Its name.
        arm: String,
        /// Why.
        what: &'static str,
        /// What the table is called.
        file: String,
    },
}

const CERTIFICATE: &str = "certificate_bytes";
const CHAIN: &str = "chain_bytes";
const CERTIFICATES: &str = "certificates";
const COUNT: &str = "count";

/// The table that comes along.
const PUBLIC: &str = include_str!("../data/public-chains.csv");

impl ChainSizes {
    /// What public sites sent: 8,151 of the Tranco top 10,000, in August 2026.
    ///
    /// # Errors
    ///
    /// Never: it is read in tests.
    pub fn public() -> Result<ChainSizes, ChainSizesError> {
        ChainSizes::parse("the table of public sites", PUBLIC.as_bytes())
    }

    /// Reads CSV. A line is a chain, or as many as `count` says, with `certificate_bytes`, the Certificate message with
    /// its header, or with `chain_bytes`, all certificates in DER, and `certificates`, how many these are. `file` is what
    /// it is called.
    ///
    /// # Errors
    ///
    /// When it is no such table, with the line.
    pub fn parse(file: &str, content: &[u8]) -> Result<ChainSizes, ChainSizesError> {
        let called = || file.to_owned();
        let (names, rows) = rows(content).map_err(|error| ChainSizesError::Table {
            file: called(),
            error,
        })?;
        let column = |column: &'static str| {
            let mut found = (0..).zip(&names).filter(|(_, name)| *name == column);
            match (found.next(), found.next()) {
                (Some(_), Some(_)) => Err(ChainSizesError::Twice {
                    file: called(),
                    column,
                }),
                (found, _) => Ok(found.map(|(index, _)| (index, column))),
            }
        };
        let (message, chain) = (column(CERTIFICATE)?, column(CHAIN)?);
        let (certificates, count) = (column(CERTIFICATES)?, column(COUNT)?);
        let mut sizes = BTreeMap::new();
        for (line, cells) in rows {
            let number = |(index, column): (usize, &'static str), least: u64, most: u64| {
                let cell = cells.get(index).map_or("", String::as_str);
                let number = cell.parse().ok();
                let number = number.filter(|number| (least..=most).contains(number));
                number.ok_or_else(|| ChainSizesError::Cell {
                    file: called(),
                    line,
                    cell: cell.to_owned(),
                    column,
                    least,
                    most,
                })
            };
            let bytes = match (message, chain, certificates) {
                (Some(message), _, _) => number(message, EMPTY, MOST)?,
                (None, Some(chain), Some(certificates)) => {
                    let entries = ENTRY * number(certificates, 1, (MOST - EMPTY) / ENTRY)?;
                    EMPTY + entries + number(chain, 0, MOST - EMPTY - entries)?
                }
                _ => return Err(ChainSizesError::NoSize { file: called() }),
            };
            let chains = count.map_or(Ok(1), |count| number(count, 0, MOST_CHAINS))?;
            *sizes.entry(bytes as usize).or_default() += chains;
        }
        sizes.retain(|_, chains| *chains > 0);
        if sizes.is_empty() {
            return Err(ChainSizesError::Empty { file: called() });
        }
        Ok(ChainSizes {
            file: called(),
            sizes,
        })
    }

    /// Which of them need how many flights in each of the explanation's windows, where the chain stands in place of the arm's
    /// own: all else, the signature too, is as the arm has it.
    ///
    /// # Errors
    ///
    /// [`ChainSizesError::NotSent`] where the arm does not send its chain as it is.
    pub fn shares(&self, explained: &Explanation) -> Result<ChainShares, ChainSizesError> {
        let Explanation { arm, exchange, .. } = explained;
        let what = match arm.delivery {
            Delivery::Full if exchange.bytes(Message::Certificate) == 0 => "it sends no chain",
            Delivery::Full => {
                let windows = explained.windows.iter();
                return Ok(ChainShares {
                    file: self.file.clone(),
                    chains: self.sizes.values().sum(),
                    windows: windows
                        .map(|window| self.shares_in(arm, exchange, &window.cell))
                        .collect(),
                });
            }
            _ => "it does not send its chain as it is",
        };
        Err(ChainSizesError::NotSent {
            arm: arm.name.clone(),
            what,
            file: self.file.clone(),
        })
    }

    fn shares_in(&self, arm: &Arm, own: &Exchange, cell: &Cell) -> Vec<ChainShare> {
        let verify = own.bytes(Message::CertificateVerify) as usize;
        let needed = |certificate| flights(arm, &wire::with(own, certificate, verify), cell);
        let sizes: Vec<(usize, u64)> = (self.sizes.iter())
            .map(|(size, chains)| (*size, *chains))
            .collect();
        by_flights(&sizes, needed)
    }
}

/// Bytes of a Certificate message without certificates, of each of them besides, and of the longest.
const EMPTY: u64 = framing::NO_CERTIFICATES as u64;
const ENTRY: u64 = framing::CERTIFICATE_ENTRY as u64;
const MOST: u64 = framing::MAX_MESSAGE as u64;
/// More than there are servers.
const MOST_CHAINS: u64 = 1 << 32;

/// Chains by the flights that their sizes need, which do not fall as sizes grow: of sizes in their order, so that most need not
/// be walked through.
fn by_flights(sizes: &[(usize, u64)], needed: impl Fn(usize) -> usize) -> Vec<ChainShare> {
    let mut shares = Vec::new();
    let mut rest = sizes;
    while let [(smallest, _), ..] = rest {
        let flights = needed(*smallest);
        let end = rest.partition_point(|(size, _)| needed(*size) <= flights);
        let (these, larger) = rest.split_at(end.max(1));
        shares.push(ChainShare {
            flights,
            chains: these.iter().map(|(_, chains)| chains).sum(),
        });
        rest = larger;
    }
    shares
}

#[cfg(test)]
mod tests;
