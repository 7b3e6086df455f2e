//! What is counted, and how Prometheus reads it.
//!
//! The text format is a line for each number: a library for it would be longer to use than to
//! write, and the usual one (`prometheus-client`) writes OpenMetrics instead, which `promtool check
//! metrics` does not take.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::fmt::{self, Write};
use std::io;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::AbortHandle;
use tokio::time::{sleep, timeout};

use super::Server;
use super::access::Session;
use super::log::Log;

/// What was served.
#[derive(Debug, Default)]
pub struct Served {
    /// Handshakes that succeeded.
    pub handshakes: AtomicU64,
    /// Those among them that left out certificates.
    pub shortened: AtomicU64,
    /// Connections that failed.
    pub failed: AtomicU64,
    /// Those among them whose backend could not be connected to.
    pub unanswered: AtomicU64,
    /// Connections that were accepted.
    pub(super) accepted: AtomicU64,
    /// Handshakes by what of the chain came from DNS.
    pub(super) deliveries: [AtomicU64; DELIVERIES.len()],
    pub(super) handshakes_failed: AtomicU64,
    pub(super) bytes_omitted: AtomicU64,
    pub(super) round_trips_saved: AtomicU64,
    pub(super) bytes_to_clients: AtomicU64,
    pub(super) bytes_to_backends: AtomicU64,
    pub(super) took: Histogram,
    pub(super) refused: AtomicU64,
}

/// What of a chain comes from DNS, as all that is reported has it.
pub(super) const DELIVERIES: [&str; 5] = ["whole", "root", "intermediate", "end-entity", "resumed"];

impl Served {
    pub(super) fn count(&self, session: &Session) {
        self.handshakes.fetch_add(1, Ordering::Relaxed);
        let all = DELIVERIES.iter().zip(&self.deliveries);
        for (_, count) in all.filter(|(name, _)| **name == session.delivery) {
            count.fetch_add(1, Ordering::Relaxed);
        }
        if !matches!(session.delivery, "whole" | "resumed") {
            self.shortened.fetch_add(1, Ordering::Relaxed);
        }
        let omitted = u64::try_from(session.bytes_omitted).unwrap_or(u64::MAX);
        self.bytes_omitted.fetch_add(omitted, Ordering::Relaxed);
        let saved = session.round_trips_saved.into();
        self.round_trips_saved.fetch_add(saved, Ordering::Relaxed);
        self.took.observe(session.took);
    }
}

/// Bounds of the histogram's buckets, in milliseconds.
const BOUNDS: [u64; 13] = [
    1, 2, 5, 10, 25, 50, 100, 250, 500, 1_000, 2_500, 5_000, 10_000,
];

/// How long something took.
#[derive(Debug, Default)]
pub(super) struct Histogram {
    /// Of each bound, and beyond.
    buckets: [AtomicU64; BOUNDS.len() + 1],
    microseconds: AtomicU64,
}

impl Histogram {
    pub(super) fn observe(&self, took: Duration) {
        let at = BOUNDS
            .iter()
            .position(|bound| took <= Duration::from_millis(*bound));
        if let Some(bucket) = self.buckets.get(at.unwrap_or(BOUNDS.len())) {
            bucket.fetch_add(1, Ordering::Relaxed);
        }
        let took = u64::try_from(took.as_micros()).unwrap_or(u64::MAX);
        self.microseconds.fetch_add(took, Ordering::Relaxed);
    }
}

/// Metrics as text, version 0.0.4 of the format.
#[derive(Default)]
struct Text(String);

impl Text {
    /// A metric with a value for each of its labels.
    fn metric<V: fmt::Display>(
        &mut self,
        name: &str,
        kind: &str,
        help: &str,
        values: impl IntoIterator<Item = (Vec<(&'static str, String)>, V)>,
    ) {
        self.head(name, kind, help);
        for (labels, value) in values {
            self.value(name, &labels, value);
        }
    }

    fn count(&mut self, name: &str, help: &str, value: &AtomicU64) {
        let value = value.load(Ordering::Relaxed);
        self.metric(name, "counter", help, [(Vec::new(), value)]);
    }

    fn histogram(&mut self, name: &str, help: &str, histogram: &Histogram) {
        const MILLISECONDS: f64 = 1e3;
        const MICROSECONDS: f64 = 1e6;
        self.head(name, "histogram", help);
        let bounds = BOUNDS
            .iter()
            .map(|bound| (*bound as f64 / MILLISECONDS).to_string());
        let mut sum = 0;
        for (bound, count) in bounds.chain(["+Inf".to_owned()]).zip(&histogram.buckets) {
            sum += count.load(Ordering::Relaxed);
            self.value(&format!("{name}_bucket"), &[("le", bound)], sum);
        }
        let seconds = histogram.microseconds.load(Ordering::Relaxed) as f64 / MICROSECONDS;
        self.value(&format!("{name}_sum"), &[], seconds);
        self.value(&format!("{name}_count"), &[], sum);
    }

    // Writing to a string can't fail.
    fn head(&mut self, name: &str, kind: &str, help: &str) {
        let _ = writeln!(self.0, "# HELP {name} {help}\n# TYPE {name} {kind}");
    }

    fn value(&mut self, name: &str, labels: &[(&str, String)], value: impl fmt::Display) {
        let escaped = |text: &str| {
            let text = text.replace('\\', "\\\\").replace('"', "\\\"");
            text.replace('\n', "\\n")
        };
        let labels = labels
            .iter()
            .map(|(name, value)| format!("{name}=\"{}\"", escaped(value)));
        let labels = labels.collect::<Vec<_>>().join(",");
        let _ = match labels.as_str() {
            "" => writeln!(self.0, "{name} {value}"),
            labels => writeln!(self.0, "{name}{{{labels}}} {value}"),
        };
    }
}

impl Server {
    /// All that is counted and known, as Prometheus reads it.
    pub fn metrics(&self) -> String {
        let mut text = Text::default();
        let served = &self.served;
        let count = |count: &AtomicU64| count.load(Ordering::Relaxed);
        let label = |name: &'static str, value: &str| vec![(name, value.to_owned())];
        text.metric(
            "lastbyte_build_info",
            "gauge",
            "The version that runs.",
            [(label("version", env!("CARGO_PKG_VERSION")), 1)],
        );
        text.count(
            "lastbyte_ad_connections_total",
            "Connections that were accepted.",
            &served.accepted,
        );
        text.count(
            "lastbyte_ad_connections_refused_total",
            "Connections that were closed at once, as their address had as many as one may have.",
            &served.refused,
        );
        let taken = self.room.taken();
        text.metric(
            "lastbyte_ad_connections",
            "gauge",
            "Connections that are open: without a whole record of the client yet, in their handshake, or established.",
            [
                (label("state", "silent"), taken.silent),
                (label("state", "handshake"), taken.handshakes),
                (label("state", "established"), taken.established),
            ],
        );
        text.metric(
            "lastbyte_ad_signing_waiting",
            "gauge",
            "Handshakes that wait for their turn to be computed.",
            [(Vec::new(), self.signers.waiting())],
        );
        let deliveries = DELIVERIES.iter().zip(&served.deliveries);
        text.metric(
            "lastbyte_ad_handshakes_total",
            "counter",
            "Handshakes that were done, by what of the chain came from DNS.",
            deliveries.map(|(name, done)| (label("delivery", name), count(done))),
        );
        text.count(
            "lastbyte_ad_handshakes_failed_total",
            "Handshakes that were not done.",
            &served.handshakes_failed,
        );
        text.histogram(
            "lastbyte_ad_handshake_seconds",
            "From accepting a connection to its handshake done.",
            &served.took,
        );
        text.count(
            "lastbyte_ad_omitted_bytes_total",
            "Bytes of certificates that were left out.",
            &served.bytes_omitted,
        );
        text.count(
            "lastbyte_ad_saved_round_trips_total",
            "Round trips that this saved, by arithmetic, with an initial window of ten segments.",
            &served.round_trips_saved,
        );
        text.metric(
            "lastbyte_ad_relayed_bytes_total",
            "counter",
            "Bytes of plain text that were relayed.",
            [
                (label("to", "client"), count(&served.bytes_to_clients)),
                (label("to", "backend"), count(&served.bytes_to_backends)),
            ],
        );
        text.metric(
            "lastbyte_ad_failures_total",
            "counter",
            "What failed, and why.",
            self.causes.all().into_iter().map(|(cause, times)| {
                let labels = vec![("what", cause.what.to_owned()), ("reason", cause.reason)];
                (labels, times)
            }),
        );
        self.chains_as_text(&mut text);
        text.0
    }

    fn chains_as_text(&self, text: &mut Text) {
        let Some(chains) = &self.chains else {
            return;
        };
        let chains = chains.load();
        let seconds = |at: SystemTime| {
            let since = at.duration_since(UNIX_EPOCH);
            since.map_or(0, |since| since.as_secs())
        };
        let labels = |chain: &pqtlsad::server::Chain| {
            let name = chain.names().first().cloned().unwrap_or_default();
            vec![("name", name), ("digest", chain.digest().to_string())]
        };
        let current = chains.current();
        text.metric(
            "lastbyte_ad_chain_expiry_timestamp_seconds",
            "gauge",
            "When the first certificate of a chain expires.",
            current
                .iter()
                .map(|chain| (labels(chain), seconds(chain.valid_until()))),
        );
        let previous: Vec<_> = chains.previous().collect();
        text.metric(
            "lastbyte_ad_previous_chains",
            "gauge",
            "Chains that were replaced, and are still left out for those who have their records.",
            [(Vec::new(), previous.len())],
        );
        text.metric(
            "lastbyte_ad_previous_chain_until_timestamp_seconds",
            "gauge",
            "How long the record of such a chain may still be held.",
            previous
                .iter()
                .map(|(chain, until)| (labels(chain), seconds(*until))),
        );
    }

    /// Answers whoever asks for metrics, over HTTP.
    pub(super) async fn expose(self: &Arc<Self>, log: &Log) -> Infallible {
        /// What an answer may take.
        const PATIENCE: Duration = Duration::from_secs(10);
        const WHAT: &str = "answering for metrics";
        /// What is between two tries to listen.
        const AGAIN: Duration = Duration::from_secs(1);
        let Some(address) = self.config.metrics else {
            return std::future::pending().await;
        };
        let early = self
            .metrics
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take();
        let mut listener = early.map_or_else(|| listen(address), Ok);
        let listener = loop {
            match listener.and_then(TcpListener::from_std) {
                Ok(listener) => break listener,
                // An earlier process may still have it.
                Err(error) => log.failed(WHAT, None, &format!("{address}: {error}")),
            }
            sleep(AGAIN).await;
            listener = listen(address);
        };
        let mut answering = Latest::default();
        loop {
            match listener.accept().await {
                Ok((stream, _)) => {
                    let server = Arc::clone(self);
                    answering.spawn(async move {
                        // Who asks notices, and asks again.
                        let _ = timeout(PATIENCE, answer(stream, &server)).await;
                    });
                }
                Err(error) => {
                    log.failed(WHAT, None, &error.to_string());
                    sleep(super::NO_ROOM).await;
                }
            }
        }
    }
}

/// Tasks of which only the latest go on: who connects and says nothing keeps nobody else waiting.
#[derive(Default)]
struct Latest(VecDeque<AbortHandle>);

impl Latest {
    /// How many go on.
    const MOST: usize = 16;

    fn spawn(&mut self, task: impl Future<Output = ()> + Send + 'static) {
        self.0.retain(|task| !task.is_finished());
        if self.0.len() >= Latest::MOST
            && let Some(oldest) = self.0.pop_front()
        {
            oldest.abort();
        }
        self.0.push_back(tokio::spawn(task).abort_handle());
    }
}

/// A socket as tokio takes it.
pub(super) fn listen(address: SocketAddr) -> io::Result<std::net::TcpListener> {
    let listener = std::net::TcpListener::bind(address)?;
    listener.set_nonblocking(true)?;
    Ok(listener)
}

fn without_query(target: &str) -> &str {
    target.split_once('?').map_or(target, |(path, _)| path)
}

/// Answers one request, whose fields are of no interest.
async fn answer(mut stream: TcpStream, server: &Server) -> io::Result<()> {
    /// The largest head of a request, in bytes.
    const MAX_HEAD: u64 = 16 << 10;
    let (reader, mut writer) = stream.split();
    let mut lines = BufReader::new(reader.take(MAX_HEAD)).lines();
    let request = lines.next_line().await?.unwrap_or_default();
    while lines
        .next_line()
        .await?
        .is_some_and(|line| !line.is_empty())
    {}
    let mut words = request.split(' ');
    // A query asks for nothing else.
    let path = (words.next(), words.next().map(without_query));
    let (status, body) = match path {
        (Some("GET" | "HEAD"), Some("/metrics")) => ("200 OK", server.metrics()),
        (Some("GET" | "HEAD"), _) => ("404 Not Found", "look for /metrics\n".to_owned()),
        _ => ("405 Method Not Allowed", "use GET\n".to_owned()),
    };
    let head = format!(
        "HTTP/1.1 {status}\r\nContent-Type: text/plain; version=0.0.4; charset=utf-8\r\n\
         Content-Length: {}\r\nConnection: close\r\n\r\n",
        body.len()
    );
    writer.write_all(head.as_bytes()).await?;
    if path.0 == Some("GET") {
        writer.write_all(body.as_bytes()).await?;
    }
    writer.shutdown().await
}

#[cfg(test)]
mod tests {
    use std::future::pending;

    use tokio::sync::oneshot;

    use super::{Latest, without_query};

    #[tokio::test]
    async fn the_oldest_gives_way() {
        let mut tasks = Latest::default();
        let mut spawn = || {
            let (held, gone) = oneshot::channel::<()>();
            tasks.spawn(async move {
                pending::<()>().await;
                drop(held);
            });
            gone
        };
        let mut all: Vec<_> = (0..Latest::MOST).map(|_| spawn()).collect();
        let last = spawn();
        // Its task was ended, with what it held.
        assert!(all.remove(0).await.is_err());
        for mut other in all.into_iter().chain([last]) {
            assert_eq!(other.try_recv(), Err(oneshot::error::TryRecvError::Empty));
        }
    }

    #[test]
    fn a_query_is_no_part_of_a_path() {
        for target in ["/metrics", "/metrics?", "/metrics?a=b?c"] {
            assert_eq!(without_query(target), "/metrics");
        }
        assert_eq!(without_query("/metricsx"), "/metricsx");
    }
}
