//! `lastbyte ad publish`.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, value_parser};
use domain::tsig::Key;
use lastbyte_ad::dns::tsig;
use lastbyte_ad::publish::{Event, PublishError, Source, SourceError, Watch, watch};
use lastbyte_ad::secret::exposure;
use pqtlsad::Part;
use pqtlsad::flight::InitialWindow;

use super::{Address, Mechanism, Type, block_on, stopped, tell, ttl};
use crate::{Failure, print_document};

/// Publishes certificates from the top of a chain downwards.
///
/// With --watch, the record changes whenever the chain file does, and only after the server is seen
/// to accept it: the server has to load the new chain first and to keep the old one for the TTL, as
/// `lastbyte ad serve` does. Without --watch, --server is asked once, and nothing is published if it does not accept it:
/// the exit code is 1 then.
#[derive(Debug, Args)]
pub(crate) struct Publish {
    /// The server's name
    name: String,
    /// Its chain in PEM, the end-entity first; several for several algorithms
    #[arg(long, value_name = "FILE", required = true)]
    chain: Vec<PathBuf>,
    /// The lowest certificate to publish: root, intermediate or end-entity [default: as much as
    /// brings the server's first flight within its initial window; why is written]
    #[arg(long, value_name = "PART")]
    from: Option<Part>,
    /// The server's initial congestion window, in segments
    #[arg(long, value_name = "SEGMENTS", default_value = "10", value_parser = value_parser!(u32).range(1..=1000))]
    initcwnd: u32,
    /// How long resolvers may keep the records
    #[arg(long, value_name = "TIME", default_value = "1h", value_parser = ttl)]
    ttl: Duration,
    #[command(flatten)]
    record_type: Type,
    /// Update the zone of this primary server (RFC 2136) instead of printing lines
    #[arg(long, value_name = "ADDRESS")]
    update: Option<Address>,
    /// The key that signs updates, in a file as tsig-keygen writes it
    #[arg(long, value_name = "FILE", requires = "update")]
    tsig: Option<PathBuf>,
    /// Go on, and publish again whenever a chain changes
    #[arg(long, requires_all = ["update", "server"])]
    watch: bool,
    /// The TLS server, which has to accept what is published: asked once, or with --watch each time
    #[arg(long, value_name = "ADDRESS:PORT", value_parser = crate::options::socket_address)]
    server: Option<SocketAddr>,
    #[command(flatten)]
    mechanism: Mechanism,
}

impl Publish {
    pub(super) fn run(self) -> Result<(), Failure> {
        let source = Source {
            // As the server's certificates have it.
            name: self.name.trim_end_matches('.').to_ascii_lowercase(),
            files: self.chain.clone(),
            part: self.from,
            window: InitialWindow {
                segments: self.initcwnd,
                ..InitialWindow::default()
            },
            record_type: self.record_type.record_type,
            ttl: self.ttl,
        };
        // What is wrong from the start is reported now, with --watch too.
        let loaded = source.load()?;
        for explanation in &loaded.explanations {
            tell(explanation);
        }
        if let Some(server) = self.server.filter(|_| !self.watch) {
            let accepted = block_on(loaded.is_accepted(server, self.mechanism.extension))?;
            if !accepted.map_err(Failure::run)? {
                return Err(Failure::Run(format!(
                    "nothing is published, as {server} does not accept these certificates: have it load the chain first, \
                     or wait for it with --watch"
                )));
            }
        }
        let publication = loaded.publication;
        let Some(dns) = self.update else {
            return print_document(&publication.zone_lines());
        };
        let dns = dns.or_port(53);
        let key = self.key()?;
        match self.server.filter(|_| self.watch) {
            None => {
                block_on(publication.send(dns, key.as_ref()))??;
                let (records, bytes) = publication.size();
                tell(&published(records, bytes));
                Ok(())
            }
            Some(tls) => {
                let to = Watch {
                    dns,
                    key,
                    tls,
                    extension: self.mechanism.extension,
                };
                block_on(async {
                    tokio::select! {
                        never = watch(&source, &to, |event| tell(&say(&event))) => match never {},
                        stopped = stopped() => stopped.map_err(Failure::run),
                    }
                })?
            }
        }
    }

    fn key(&self) -> Result<Option<Key>, Failure> {
        let Some(file) = &self.tsig else {
            return Ok(None);
        };
        let wrong = |error: &dyn std::fmt::Display| {
            Failure::Usage(format!("\"{}\": {error}", file.display()))
        };
        /// Larger than any key.
        const MOST: u64 = 1 << 20;
        let text = lastbyte_files::read_text(file, MOST).map_err(|error| wrong(&error))?;
        exposure(file).iter().for_each(|warning| tell(warning));
        tsig::key(&text).map(Some).map_err(|error| wrong(&error))
    }
}

fn say(event: &Event) -> String {
    match event {
        Event::Published { records, bytes } => published(*records, *bytes),
        Event::Unchanged => "the records stay as they are".to_owned(),
        Event::Waiting => "waiting: the server does not accept these certificates yet".to_owned(),
        Event::Failed(error) => format!("to be tried again: {error}"),
    }
}

fn published(records: usize, bytes: usize) -> String {
    let plural = if records == 1 { "" } else { "s" };
    format!("published {records} record{plural} of {bytes} bytes")
}

impl From<PublishError> for Failure {
    fn from(error: PublishError) -> Failure {
        match error {
            PublishError::Dns(_) | PublishError::Update(_) | PublishError::NotKept { .. } => {
                Failure::run(error)
            }
            _ => Failure::usage(error),
        }
    }
}

impl From<SourceError> for Failure {
    fn from(error: SourceError) -> Failure {
        Failure::usage(error)
    }
}
