//! `lastbyte ad fetch`.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use lastbyte_ad::client::Use;
use lastbyte_ad::fetch::{FetchError, fetch};
use lastbyte_ad::http::Url;

use super::{ClientOptions, Format, Proof, Type, block_on, duration, report};
use crate::cli::{Failure, print};

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
        let record_type = self.record_type.record_type;
        let connector = self
            .client
            .connector(record_type, self.grace, self.end_entity)?;
        let how = if self.plain {
            Use::Nothing
        } else {
            Use::Record
        };
        let mut body: Box<dyn Write> = match &self.output {
            None => Box::new(io::stdout()),
            Some(path) => {
                let file = File::create(path).map_err(|error| {
                    Failure::Usage(format!("can't write \"{}\": {error}", path.display()))
                })?;
                Box::new(BufWriter::new(file))
            }
        };
        let fetching = fetch(&connector, &self.url, how, self.client.timeout, &mut body);
        let fetched = block_on(fetching)??;
        let report = match self.format {
            Format::Table => report::fetched_table(&self.url, &fetched),
            Format::Json => report::fetched_json(&self.url, &fetched),
        };
        match self.output {
            Some(_) => print(&report),
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
