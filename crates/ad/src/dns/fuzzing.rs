//! What fuzz targets reach: streams and updates without sockets.

use std::net::SocketAddr;
use std::time::Duration;

use domain::tsig::Key;
use tokio::io::{AsyncRead, AsyncWrite};

use super::message::{MessageError, Response};
use super::stream::Connection;
use super::update::Request;
use super::{Change, Name, Question, UpdateError};

/// Asks these questions over one stream, one after the other; nothing where the stream ends first.
pub async fn ask_over(
    stream: impl AsyncRead + AsyncWrite + Send + 'static,
    questions: &[Question],
) -> Vec<Option<Result<Response, MessageError>>> {
    let connection = Connection::new(stream, Duration::from_secs(1));
    let mut answers = Vec::new();
    for question in questions {
        let answer = connection.ask(question).await;
        answers.push(answer.map(|(answer, _)| answer));
    }
    answers
}

/// Updates a zone at a server that is a function.
///
/// # Errors
///
/// As [`update`](super::update()).
pub fn update_with(
    zone: &Name,
    changes: &[Change],
    key: Option<&Key>,
    server: impl FnOnce(&[u8]) -> Vec<u8>,
) -> Result<(), UpdateError> {
    let request = Request::new(zone, changes, key)?;
    let answer = server(&request.message);
    request.check(SocketAddr::from(([127, 0, 0, 1], 53)), answer)
}
