//! Connects to the first address that lets us.

use std::collections::VecDeque;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use tokio::net::{TcpStream, lookup_host};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep_until};

use super::{Addresses, ConnectError, Settings};
use crate::dns::{Answer, Client, DnsError, First, Question, Rtype};

/// How long an attempt runs alone (RFC 8305, section 8).
const ATTEMPT_DELAY: Duration = Duration::from_millis(250);

/// A TCP connection. Times are since the start.
pub(super) struct Established {
    pub(super) stream: TcpStream,
    pub(super) address: SocketAddr,
    pub(super) name_lookup: Duration,
    pub(super) connected: Duration,
}

/// Connects to where the settings say, or else to an address of `name` as soon as one is known; to
/// the others too where that one takes long or fails (RFC 8305).
pub(super) async fn connect(
    dns: &Arc<Client>,
    name: &str,
    port: u16,
    settings: &Settings,
    start: Instant,
) -> Result<Established, ConnectError> {
    let mut untried = VecDeque::new();
    let mut lookups = JoinSet::new();
    match (settings.connect, name.parse::<IpAddr>(), settings.addresses) {
        (Some(address), ..) => untried.push_back(address),
        (None, Ok(address), _) => untried.push_back(SocketAddr::new(address, port)),
        (None, Err(_), Addresses::System) => {
            let name = name.to_owned();
            lookups.spawn(async move { addresses_of_system(&name).await });
        }
        (None, Err(_), Addresses::Dns) => {
            for rtype in [Rtype::AAAA, Rtype::A] {
                let question = Question {
                    name: super::lookup::domain_name(name)?,
                    rtype,
                };
                let dns = Arc::clone(dns);
                lookups.spawn(async move { addresses(&dns, &question).await });
            }
        }
    }
    let mut name_lookup = (!untried.is_empty()).then_some(Duration::ZERO);
    let mut attempts = JoinSet::new();
    let mut next = Instant::now();
    let mut failure = None;
    let mut why = None;
    loop {
        if (attempts.is_empty() || next <= Instant::now())
            && let Some(address) = untried.pop_front()
        {
            attempts.spawn(attempt(address));
            next = Instant::now() + ATTEMPT_DELAY;
        }
        if lookups.is_empty() && attempts.is_empty() && untried.is_empty() {
            return Err(failure.unwrap_or_else(|| ConnectError::NoAddress {
                name: name.to_owned(),
                why,
            }));
        }
        tokio::select! {
            Some(found) = lookups.join_next() => match found {
                Ok(Ok(found)) => {
                    if !found.is_empty() {
                        name_lookup.get_or_insert_with(|| start.elapsed());
                    }
                    untried.extend(found.into_iter().map(|address| SocketAddr::new(address, port)));
                }
                Ok(Err(error)) => why = Some(error),
                Err(_) => {}
            },
            Some(attempted) = attempts.join_next() => match attempted {
                Ok((address, Ok(stream))) => {
                    return Ok(Established {
                        stream,
                        address,
                        name_lookup: name_lookup.unwrap_or_default(),
                        connected: start.elapsed(),
                    });
                }
                Ok((address, Err(error))) => failure = Some(ConnectError::Tcp { address, error }),
                Err(_) => {}
            },
            () = sleep_until(next), if !untried.is_empty() => {}
        }
    }
}

async fn attempt(address: SocketAddr) -> (SocketAddr, io::Result<TcpStream>) {
    let connected = TcpStream::connect(address).await;
    let connected = connected.and_then(|stream| stream.set_nodelay(true).map(|()| stream));
    (address, connected)
}

async fn addresses(dns: &Client, question: &Question) -> Result<Vec<IpAddr>, DnsError> {
    let records = match dns.ask(question, First::Udp).await?.answer {
        Answer::Records(records) => records.data,
        Answer::NoData | Answer::NoSuchName => Vec::new(),
    };
    Ok(records.iter().filter_map(|data| address(data)).collect())
}

/// What the system knows, in the order of its preference (RFC 6724).
async fn addresses_of_system(name: &str) -> Result<Vec<IpAddr>, DnsError> {
    let found = lookup_host((name, 0)).await.map_err(DnsError::System)?;
    Ok(found.map(|found| found.ip()).collect())
}

/// The address in an A or AAAA record, unless it has another length.
fn address(data: &[u8]) -> Option<IpAddr> {
    let v4 = <[u8; 4]>::try_from(data).map(IpAddr::from);
    let v6 = || <[u8; 16]>::try_from(data).map(IpAddr::from);
    v4.or_else(|_| v6()).ok()
}
