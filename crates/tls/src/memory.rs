//! Handshakes in memory, from one side to the other.

use std::time::Duration;

use crate::observer::{Observer, Side};
use crate::{Connection, KeyLog, Progress, Retry, Stack, TlsError};

/// A complete handshake, with both ends at hand.
pub struct Handshake {
    /// The client, established.
    pub client: Box<dyn Connection>,
    /// The server, established.
    pub server: Box<dyn Connection>,
    /// What both have sent.
    pub observer: Observer,
    /// Bytes that the server sent of its own accord when it was established: session tickets.
    pub tickets_bytes: usize,
}

/// What each step of a handshake takes by some clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StepTimes {
    /// The client makes its key share and ClientHello.
    pub client_hello: Duration,
    /// The server answers with its whole flight.
    pub server_flight: Duration,
    /// The client verifies that flight and makes its own last one.
    pub client_finish: Duration,
    /// The server verifies the client's last flight.
    pub server_finish: Duration,
}

/// Carries out one full handshake between the two sides of `stack`.
///
/// # Errors
/// As [`handshake_between`].
pub fn handshake_in_memory(stack: &dyn Stack) -> Result<Handshake, TlsError> {
    handshake_between(stack.client()?, stack.server()?)
}

/// Carries out one handshake between two connections that have sent nothing yet.
///
/// # Errors
/// What either side says of the other, or [`TlsError::Protocol`] when both wait.
pub fn handshake_between(
    client: Box<dyn Connection>,
    server: Box<dyn Connection>,
) -> Result<Handshake, TlsError> {
    let mut no_clock = || Duration::ZERO;
    Ok(drive(client, server, &mut no_clock)?.0)
}

/// A handshake that failed at a client that has something else to try.
pub struct FailedHandshake {
    /// What that is.
    pub retry: Retry,
    /// What both have sent, the client's alert included.
    pub observer: Observer,
    /// The client's secrets.
    pub keys: KeyLog,
}

/// Carries out the first handshake of a client, and gives what became of it if it failed so that the client has
/// something else to try.
///
/// # Errors
/// As [`handshake_between`], where the client has nothing else to try.
pub fn first_attempt(stack: &dyn Stack) -> Result<Option<FailedHandshake>, TlsError> {
    let (mut client, mut server) = (stack.client()?, stack.server()?);
    let mut observer = Observer::default();
    loop {
        let progress = client.advance();
        let mut sent = Vec::new();
        client.transmit(&mut sent);
        observer.sent(Side::Client, &sent);
        match progress {
            Ok(Progress::Established) => return Ok(None),
            Ok(Progress::Handshaking) => {}
            Err(error) => {
                let keys = client.key_log();
                let failed = |retry| FailedHandshake {
                    retry,
                    observer,
                    keys,
                };
                return client.retry().map(failed).map(Some).ok_or(error);
            }
        }
        server.receive(&sent);
        server.advance()?;
        let mut answer = Vec::new();
        server.transmit(&mut answer);
        observer.sent(Side::Server, &answer);
        client.receive(&answer);
        if sent.is_empty() && answer.is_empty() {
            return Err(both_wait());
        }
    }
}

/// Carries out one handshake and measures its steps by `clock`, of which only
/// differences count: the thread's CPU time, for one. Making the two connections
/// is not part of any step.
///
/// With a HelloRetryRequest, both sides take the first two steps twice: each is then half of what both
/// took.
///
/// # Errors
/// As [`handshake_between`].
pub fn time_handshake(
    client: Box<dyn Connection>,
    server: Box<dyn Connection>,
    clock: &mut dyn FnMut() -> Duration,
) -> Result<StepTimes, TlsError> {
    match *drive(client, server, clock)?.1 {
        [client_hello, server_flight, client_finish, server_finish] => Ok(StepTimes {
            client_hello,
            server_flight,
            client_finish,
            server_finish,
        }),
        [first, retry, second, flight, client_finish, server_finish] => Ok(StepTimes {
            client_hello: (first + second) / 2,
            server_flight: (retry + flight) / 2,
            client_finish,
            server_finish,
        }),
        ref turns => Err(TlsError::Protocol {
            reason: format!("the handshake took {} turns instead of 4", turns.len()),
        }),
    }
}

/// Lets both sides take turns, and gives how long each turn took.
fn drive(
    client: Box<dyn Connection>,
    server: Box<dyn Connection>,
    clock: &mut dyn FnMut() -> Duration,
) -> Result<(Handshake, Vec<Duration>), TlsError> {
    let mut handshake = Handshake {
        client,
        server,
        observer: Observer::default(),
        tickets_bytes: 0,
    };
    let mut turns = Vec::new();
    let mut received = Vec::new();
    let mut sent = Vec::new();
    let mut peer_progress = Progress::Handshaking;
    for side in [Side::Client, Side::Server].into_iter().cycle() {
        let (connection, peer) = match side {
            Side::Client => (&mut handshake.client, &mut handshake.server),
            Side::Server => (&mut handshake.server, &mut handshake.client),
        };
        let start = clock();
        connection.receive(&received);
        let progress = connection.advance()?;
        connection.transmit(&mut sent);
        turns.push(clock().saturating_sub(start));

        handshake.observer.sent(side, &sent);
        if progress == Progress::Established && peer_progress == Progress::Established {
            peer.receive(&sent);
            handshake.tickets_bytes = sent.len();
            break;
        }
        if received.is_empty() && sent.is_empty() {
            return Err(both_wait());
        }
        peer_progress = progress;
        std::mem::swap(&mut received, &mut sent);
        sent.clear();
    }
    Ok((handshake, turns))
}

fn both_wait() -> TlsError {
    TlsError::Protocol {
        reason: "both sides wait for the other".to_owned(),
    }
}

#[cfg(test)]
mod tests;
