//! `lastbyte ad fetch`.

use std::fs::OpenOptions;
use std::io::{self, Write};
use std::num::NonZero;
use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use lastbyte::report::for_terminal;
use lastbyte_ad::client::{Connector, Use};
use lastbyte_ad::fetch::{FetchError, Patience, fetch};
use lastbyte_ad::http::Url;

use super::{ClientOptions, Format, Proof, Type, block_on, duration, report};
use crate::draft::{Draft, cannot_write};
use crate::{Failure, print_document};

/// Fetches a URL over HTTP/1.1. The record is asked for together with the address, and is used if it is
/// there when TCP is.
///
/// The body goes to standard output, and what it took to standard error; with -o the body goes to a
/// file, and what it took to standard output.
#[derive(Debug, Args)]
pub(crate) struct Fetch {
    /// https://HOST[:PORT][/PATH]
    url: Url,
    #[command(flatten)]
    client: ClientOptions,
    #[command(flatten)]
    record_type: Type,
    /// How long the ClientHello may wait for the record after TCP is established
    #[arg(long, value_name = "TIME", default_value = "0ms", value_parser = duration)]
    grace: Duration,
    /// How the server is to prove its key if DNS delivers the whole chain
    #[arg(long, value_name = "HOW", default_value = "raw-public-key")]
    end_entity: Proof,
    /// Fetch it so many times, each over a connection of its own; what DNS said is kept for its TTL
    #[arg(long, value_name = "N", default_value = "1")]
    repeat: NonZero<u32>,
    /// What each may take from the first question to the last byte; --timeout is for silence
    #[arg(short, long, value_name = "TIME", default_value = "300s", value_parser = duration)]
    max_time: Duration,
    /// Use plain TLS, to compare with
    #[arg(long)]
    plain: bool,
    /// How the times are printed
    #[arg(long, value_name = "FORMAT", default_value = "table")]
    format: Format,
    /// Write the body there
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
}

impl Fetch {
    pub(super) fn run(self) -> Result<(), Failure> {
        block_on(self.fetch_all())?
    }

    async fn fetch_all(&self) -> Result<(), Failure> {
        let record_type = self.record_type.record_type;
        let connector = self
            .client
            .connector(record_type, self.grace, self.end_entity)?;
        for _ in 0..self.repeat.get() {
            self.fetch(&connector).await?;
        }
        Ok(())
    }

    async fn fetch(&self, connector: &Connector) -> Result<(), Failure> {
        let how = if self.plain {
            Use::Nothing
        } else {
            Use::Record
        };
        let patience = Patience {
            silence: self.client.timeout,
            total: self.max_time,
        };
        let fetched = match &self.output {
            None => fetch(connector, &self.url, how, patience, &mut io::stdout()).await?,
            // A device or a pipe is written to, a file is replaced.
            Some(path) if path.exists() && !path.is_file() => {
                let file = OpenOptions::new().write(true).open(path);
                let mut body = file.map_err(|error| cannot_write(path, error))?;
                fetch(connector, &self.url, how, patience, &mut body).await?
            }
            Some(path) => {
                let mut draft = Draft::new(path)?;
                let fetched = fetch(connector, &self.url, how, patience, draft.file()).await?;
                draft.finish()?;
                fetched
            }
        };
        let report = match self.format {
            Format::Table => for_terminal(&report::fetched_table(&self.url, &fetched)),
            Format::Json => report::fetched_json(&self.url, &fetched),
        };
        match &self.output {
            Some(_) => print_document(&report),
            None => {
                let _ = io::stderr().write_all(report.as_bytes());
                Ok(())
            }
        }
    }
}

impl From<FetchError> for Failure {
    fn from(error: FetchError) -> Failure {
        match error {
            FetchError::Connect(error) => error.into(),
            _ => Failure::run(error),
        }
    }
}
