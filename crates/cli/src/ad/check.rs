//! `lastbyte ad check`.

use std::str::FromStr;
use std::time::Duration;

use clap::Args;
use lastbyte_ad::check::check;

use super::{ClientOptions, Format, Proof, Type, block_on, report};
use crate::{Failure, print, print_json};

/// Connects without the record and with it.
#[derive(Debug, Args)]
pub(crate) struct Check {
    /// NAME[:PORT]
    server: NameAndPort,
    #[command(flatten)]
    client: ClientOptions,
    #[command(flatten)]
    record_type: Type,
    /// A certificate that expires within so many days is a problem
    #[arg(long, value_name = "DAYS", default_value = "0")]
    expires_within: u16,
    /// How it is printed
    #[arg(long, value_name = "FORMAT", default_value = "table")]
    format: Format,
}

/// A server.
#[derive(Clone, Debug)]
struct NameAndPort {
    name: String,
    port: u16,
}

impl FromStr for NameAndPort {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<NameAndPort, Self::Err> {
        let (name, port) = match text.split_once(':') {
            None => (text, 443),
            Some((name, port)) => (name, port.parse().map_err(|_| "write NAME or NAME:PORT")?),
        };
        if name.is_empty() {
            Err("write NAME or NAME:PORT")
        } else {
            Ok(NameAndPort {
                name: name.to_ascii_lowercase(),
                port,
            })
        }
    }
}

impl Check {
    pub(super) fn run(self) -> Result<(), Failure> {
        let record_type = self.record_type.record_type;
        let connector = self
            .client
            .connector(record_type, Duration::ZERO, Proof::default())?;
        let NameAndPort { name, port } = &self.server;
        let margin = Duration::from_secs(u64::from(self.expires_within) * 86_400);
        let checked = block_on(check(&connector, name, *port, margin))??;
        match self.format {
            Format::Table => print(&report::checked_table(name, &checked)),
            Format::Json => print_json(&report::checked_json(name, *port, &checked)),
        }?;
        match checked.problems.as_slice() {
            [] => Ok(()),
            [one] => Err(Failure::run(format!("{name}: {one}"))),
            [first, rest @ ..] => Err(Failure::Run(format!(
                "{name}: {first} (and {} more)",
                rest.len()
            ))),
        }
    }
}
