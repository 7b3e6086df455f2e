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

async fn serve(
    stream: impl AsyncRead + AsyncWrite,
    mut requests: mpsc::Receiver<Request>,
    patience: Duration,
) -> io::Result<()> {
    let (mut reader, mut writer) = tokio::io::split(stream);
    let mut pending = HashMap::new();
    let mut received = Vec::new();
    loop {
        tokio::select! {
            request = requests.recv() => {
                let Some(request) = request else {
                    return Ok(());
                };
                pending.retain(|_, asked: &mut Request| !asked.response.is_closed());
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
                while let Some(message) = take_message(&mut received) {
                    let Some(id) = message.first_chunk().map(|id| u16::from_be_bytes(*id)) else {
                        continue;
                    };
                    if let Some(Request { question, response }) = pending.remove(&id) {
                        let read = question.response(id, &message);
                        // Who no longer waits needs no answer.
                        let _ = response.send((read, message.len()));
                    }
                }
            }
        }
    }
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
    let (length, rest) = received.split_first_chunk()?;
    let length = usize::from(u16::from_be_bytes(*length));
    let message = rest.get(..length)?.to_vec();
    received.drain(..2 + length);
    Some(message)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::{framed, take_message};

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
