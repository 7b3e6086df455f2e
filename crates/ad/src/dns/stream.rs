//! Messages over a stream, several at a time (RFC 7766).

use std::collections::HashMap;
use std::io;
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::sync::{mpsc, oneshot};
use tokio::time::timeout;

use super::message::{MessageError, Response};
use super::{Question, random_id};

/// A connection that is kept open. Dropping all its clones closes it.
#[derive(Clone, Debug)]
pub(super) struct Connection {
    requests: mpsc::Sender<Request>,
}

/// A response and its size in bytes.
pub(super) type Received = (Result<Response, MessageError>, usize);

#[derive(Debug)]
struct Request {
    question: Question,
    response: oneshot::Sender<Received>,
}

impl Connection {
    /// Runs on `stream` until either end closes it. A server that takes nothing for `patience` has
    /// gone.
    pub(super) fn new(
        stream: impl AsyncRead + AsyncWrite + Send + 'static,
        patience: Duration,
    ) -> Connection {
        let (sender, requests) = mpsc::channel(16);
        tokio::spawn(async move {
            // Those who wait learn of a broken connection from the channels that close with it.
            let _ = serve(stream, requests, patience).await;
        });
        Connection { requests: sender }
    }

    /// Whether the connection is known to be closed.
    pub(super) fn is_closed(&self) -> bool {
        self.requests.is_closed()
    }

    /// Asks. `None` if the connection closes before the answer comes.
    pub(super) async fn ask(&self, question: &Question) -> Option<Received> {
        let (response, received) = oneshot::channel();
        let request = Request {
            question: question.clone(),
            response,
        };
        self.requests.send(request).await.ok()?;
        received.await.ok()
    }
}

/// Questions without an answer, at a time: of more, the server answers none.
const MOST_PENDING: usize = 1000;

async fn serve(
    stream: impl AsyncRead + AsyncWrite,
    requests: mpsc::Receiver<Request>,
    patience: Duration,
) -> io::Result<()> {
    let (mut reader, mut writer) = tokio::io::split(stream);
    // Those that nobody waits for any more are among them: their answers may be late.
    let mut pending = HashMap::new();
    let mut received = Vec::new();
    // Closed before those who wait learn that there is no answer, and ask again.
    let mut requests = requests;
    loop {
        tokio::select! {
            request = requests.recv() => {
                let Some(request) = request else {
                    return Ok(());
                };
                if pending.len() >= MOST_PENDING {
                    return Err(io::ErrorKind::TimedOut.into());
                }
                let mut id = random_id().map_err(io::Error::other)?;
                while pending.contains_key(&id) {
                    id = id.wrapping_add(1);
                }
                let query = request.question.query(id).map_err(io::Error::other)?;
                pending.insert(id, request);
                timeout(patience, writer.write_all(&framed(&query)?)).await??;
                timeout(patience, writer.flush()).await??;
            }
            length = reader.read_buf(&mut received) => {
                if length? == 0 {
                    return Err(io::ErrorKind::UnexpectedEof.into());
                }
                let mut rest = &received[..];
                while let Some((message, after)) = first_message(rest) {
                    // What nobody asked for costs its sender the connection.
                    answer(&mut pending, message).ok_or(io::ErrorKind::InvalidData)?;
                    rest = after;
                }
                let taken = received.len() - rest.len();
                received.drain(..taken);
            }
        }
    }
}

/// Gives a message to who asked for it, if anybody did.
fn answer(pending: &mut HashMap<u16, Request>, message: &[u8]) -> Option<()> {
    let id = u16::from_be_bytes(*message.first_chunk()?);
    let Request { question, response } = pending.remove(&id)?;
    // Who no longer waits needs no answer.
    let _ = response.send((question.response(id, message), message.len()));
    Some(())
}

/// A message with its length in front, as streams carry it (RFC 1035, section 4.2.2).
///
/// # Errors
///
/// If it has more than 65535 bytes.
pub fn framed(message: &[u8]) -> io::Result<Vec<u8>> {
    let length = u16::try_from(message.len())
        .map_err(|_| io::Error::new(io::ErrorKind::InvalidInput, "the message is too long"))?;
    Ok([&length.to_be_bytes(), message].concat())
}

/// Takes the first message off what was received of a stream, once all of it is there.
pub fn take_message(received: &mut Vec<u8>) -> Option<Vec<u8>> {
    let (message, rest) = first_message(received)?;
    let (message, taken) = (message.to_vec(), received.len() - rest.len());
    received.drain(..taken);
    Some(message)
}

/// The first message, once all of it is there, and what follows it.
fn first_message(received: &[u8]) -> Option<(&[u8], &[u8])> {
    let (length, rest) = received.split_first_chunk()?;
    rest.split_at_checked(usize::from(u16::from_be_bytes(*length)))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::time::Duration;

    use domain::base::Rtype;
    use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream, duplex};

    use super::{Connection, framed, take_message};
    use crate::dns::Question;

    const PATIENCE: Duration = Duration::from_secs(60);

    fn question(name: &str) -> Question {
        Question {
            name: name.parse().unwrap(),
            rtype: Rtype::A,
        }
    }

    /// The next query, as an answer that there is no such record.
    async fn answer_to_next(server: &mut DuplexStream) -> Vec<u8> {
        let mut query = vec![0; server.read_u16().await.unwrap().into()];
        server.read_exact(&mut query).await.unwrap();
        query[2] |= 0x80;
        query
    }

    #[tokio::test]
    async fn what_was_not_asked_for_ends_the_connection() {
        for unasked in [&[][..], b"1", b"12", &[0; 40]] {
            let (client, mut server) = duplex(1 << 16);
            let connection = Connection::new(client, PATIENCE);
            let name = question("one.example");
            let serve = async {
                answer_to_next(&mut server).await;
                server.write_all(&framed(unasked).unwrap()).await.unwrap();
                // The client has gone.
                server.read(&mut [0]).await.unwrap_or(0)
            };
            let (asked, more) = tokio::join!(connection.ask(&name), serve);
            assert_eq!((asked, more), (None, 0), "{unasked:?}");
            assert!(connection.is_closed());
        }
    }

    #[tokio::test]
    async fn an_answer_that_nobody_waits_for_any_more_spoils_no_other() {
        let (client, mut server) = duplex(1 << 16);
        let connection = Connection::new(client, PATIENCE);
        let names = ["one.example", "two.example"].map(question);
        let serve = async {
            let late = answer_to_next(&mut server).await;
            let in_time = answer_to_next(&mut server).await;
            let both = [late, in_time].map(|answer| framed(&answer).unwrap());
            server.write_all(&both.concat()).await.unwrap();
        };
        let ask = async {
            let short = Duration::from_millis(50);
            let given_up = tokio::time::timeout(short, connection.ask(&names[0])).await;
            assert!(given_up.is_err());
            connection.ask(&names[1]).await
        };
        let (asked, ()) = tokio::join!(ask, serve);
        assert!(asked.unwrap().0.is_ok());
        assert!(!connection.is_closed());
    }

    #[test]
    fn messages_are_taken_once_they_are_whole() {
        let sent = [
            framed(b"first").unwrap(),
            framed(b"").unwrap(),
            framed(b"2").unwrap(),
        ]
        .concat();
        let mut received = Vec::new();
        let mut taken = Vec::new();
        for byte in sent {
            received.push(byte);
            taken.extend(take_message(&mut received));
        }
        assert_eq!(taken, [&b"first"[..], b"", b"2"]);
        assert!(received.is_empty());
        assert!(framed(&[0; 65536]).is_err());
    }
}
