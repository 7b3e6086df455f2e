//! `lastbyte mtc serve`: a socket for `lastbyte_mtc::serve`.

use std::collections::VecDeque;
use std::io::{self, ErrorKind, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::sync::{Arc, Weak};
use std::thread;
use std::time::{Duration, Instant};

use lastbyte_mtc::serve::{MAX_REQUEST_BYTES, Request};

use crate::options::cannot_listen;
use crate::{Failure, print};

/// Connections at a time. The oldest makes room for one more: whoever says nothing keeps nobody out.
const MAX_CONNECTIONS: usize = 64;
/// For a request and its response together, however they trickle.
const CONNECTION_TIMEOUT: Duration = Duration::from_secs(10);
/// After a connection could not be taken, for want of files or threads.
const RETRY_AFTER: Duration = Duration::from_millis(100);

/// Serves the files of a folder until the process ends.
pub(super) fn serve(folder: &Path, listen: SocketAddr) -> Result<(), Failure> {
    let failed = |error| cannot_listen("--listen", listen, &error);
    let listener = TcpListener::bind(listen).map_err(failed)?;
    let address = listener.local_addr().map_err(failed)?;
    print(&format!("serves the logs at http://{address}/\n"))?;
    let mut open: VecDeque<Weak<TcpStream>> = VecDeque::new();
    thread::scope(|scope| {
        loop {
            let Ok((connection, _)) = listener.accept() else {
                thread::sleep(RETRY_AFTER);
                continue;
            };
            let connection = Arc::new(connection);
            make_room(&mut open);
            open.push_back(Arc::downgrade(&connection));
            let answer = move || {
                // Whoever goes away early is no concern of ours.
                let _ = answer(folder, &connection);
            };
            if thread::Builder::new().spawn_scoped(scope, answer).is_err() {
                thread::sleep(RETRY_AFTER);
            }
        }
    })
}

/// Forgets connections that have ended, and ends the oldest where there are as many as can be.
fn make_room(open: &mut VecDeque<Weak<TcpStream>>) {
    open.retain(|connection| connection.strong_count() > 0);
    if open.len() < MAX_CONNECTIONS {
        return;
    }
    if let Some(oldest) = open.pop_front().and_then(|oldest| oldest.upgrade()) {
        // Its thread finds that it has ended.
        let _ = oldest.shutdown(Shutdown::Both);
    }
}

fn answer(folder: &Path, mut connection: &TcpStream) -> io::Result<()> {
    let end = Instant::now() + CONNECTION_TIMEOUT;
    let mut request = Vec::new();
    let mut part = [0; 1024];
    while request.len() <= MAX_REQUEST_BYTES {
        connection.set_read_timeout(Some(left(end)?))?;
        let length = connection.read(&mut part)?;
        request.extend_from_slice(&part[..length]);
        if let Some(response) = Request::parse(&request).response(folder) {
            return write(connection, &response, end);
        }
        if length == 0 {
            break;
        }
    }
    Ok(())
}

fn write(mut connection: &TcpStream, mut response: &[u8], end: Instant) -> io::Result<()> {
    while !response.is_empty() {
        connection.set_write_timeout(Some(left(end)?))?;
        let length = connection.write(response)?;
        response = &response[length..];
    }
    Ok(())
}

fn left(end: Instant) -> io::Result<Duration> {
    let left = end.checked_duration_since(Instant::now());
    left.filter(|left| !left.is_zero())
        .ok_or_else(|| ErrorKind::TimedOut.into())
}
