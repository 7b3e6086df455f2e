//! Our two ends, on sockets. Both speak as much HTTP as a page needs.

use std::fmt::Write as _;
use std::io::{self, ErrorKind, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use lastbyte_tls::observer::{Observation, Observer, Side};
use lastbyte_tls::{Connection, MAX_PLAINTEXT, Progress, Stack, TlsError, names};

use super::{Arm, BODY, PATIENCE};

/// Asks a peer for a page with our client, and gives what was on the wire. The response must
/// be a success and contain `expected`.
pub(crate) fn get(arm: &Arm, address: SocketAddr, expected: &str) -> Observation {
    let (response, observation) = ask(arm, address, expected);
    let response = response.unwrap_or_else(|why| panic!("{why}\n{observation:#?}"));
    let status = response.lines().next().unwrap();
    assert!(
        status.starts_with("HTTP/1.") && status.to_lowercase().ends_with(" 200 ok"),
        "{response}"
    );
    observation
}

/// Asks a peer with our client, which must not trust it, and gives the alert that says so.
pub(crate) fn refuse(arm: &Arm, address: SocketAddr) -> &'static str {
    let (response, observation) = ask(arm, address, "");
    match (response, observation.alert) {
        (Err(_), Some((Side::Client, alert))) => names::alert(alert.0).unwrap(),
        (response, _) => panic!("{response:?}\n{observation:#?}"),
    }
}

fn ask(arm: &Arm, address: SocketAddr, expected: &str) -> (Result<String, String>, Observation) {
    let stream = TcpStream::connect_timeout(&address, PATIENCE).unwrap();
    let mut socket = Socket::new(stream, Side::Client).unwrap();
    let mut client = arm.stack().client().unwrap();
    let client = client.as_mut();
    let request = format!(
        "GET / HTTP/1.1\r\nHost: {}\r\nConnection: close\r\n\r\n",
        arm.name()
    );
    let response = socket
        .shake_hands(client)
        .and_then(|()| socket.say(client, &request))
        .and_then(|()| socket.hear(client, |text| text.contains(expected)));
    let observation = socket.observer.observe(&client.key_log());
    (response, observation)
}

/// Our server. It answers every request with [`BODY`], until it is dropped.
pub(crate) struct Server {
    pub(crate) address: SocketAddr,
    connections: Receiver<Served>,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

/// A connection that has ended.
struct Served {
    answered: Result<(), String>,
    observation: Observation,
}

impl Server {
    pub(crate) fn start(arm: &Arm) -> Server {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        listener.set_nonblocking(true).unwrap();
        let address = listener.local_addr().unwrap();
        let (sender, connections) = channel();
        let stop = Arc::new(AtomicBool::new(false));
        let stack = arm.stack();
        let stopped = Arc::clone(&stop);
        let thread = thread::spawn(move || accept(&listener, &stack, &stopped, &sender));
        Server {
            address,
            connections,
            stop,
            thread: Some(thread),
        }
    }

    /// What was on the wire of the first connection whose request was answered. A browser may
    /// open others, which it does not use.
    pub(crate) fn answered(&self) -> Observation {
        self.first(|served| served.answered.is_ok().then(|| served.observation.clone()))
    }

    /// The alert by which the peer ended a handshake.
    pub(crate) fn refusal(&self) -> &'static str {
        let alert = |served: &Served| match served.observation.alert {
            Some((Side::Client, alert)) => names::alert(alert.0),
            _ => None,
        };
        self.first(alert)
    }

    fn first<T>(&self, wanted: impl Fn(&Served) -> Option<T>) -> T {
        let deadline = Instant::now() + PATIENCE;
        let mut others = String::new();
        loop {
            let Ok(served) = self.connections.recv_timeout(until(deadline)) else {
                panic!("no such connection, but: {others}");
            };
            if let Some(wanted) = wanted(&served) {
                return wanted;
            }
            writeln!(others, "{:?} {:#?}", served.answered, served.observation).unwrap();
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            // It fails only where a test fails.
            let _ = thread.join();
        }
    }
}

fn accept(
    listener: &TcpListener,
    stack: &Arc<dyn Stack>,
    stop: &AtomicBool,
    connections: &Sender<Served>,
) {
    while !stop.load(Ordering::Relaxed) {
        match listener.accept() {
            // Each has its own thread: a peer may open one that it never uses. That thread ends
            // when the peer does, or at its own deadline.
            Ok((stream, _)) => {
                let server = stack.server().unwrap();
                let connections = connections.clone();
                thread::spawn(move || {
                    // Nobody listens once the test is over.
                    let _ = connections.send(serve(stream, server));
                });
            }
            Err(error) if error.kind() == ErrorKind::WouldBlock => {
                thread::sleep(Duration::from_millis(2));
            }
            Err(error) => panic!("{error}"),
        }
    }
}

fn serve(stream: TcpStream, mut server: Box<dyn Connection>) -> Served {
    let response = format!(
        "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: {}\r\n\
         Connection: close\r\n\r\n{BODY}",
        BODY.len()
    );
    let server = server.as_mut();
    let mut socket = Socket::new(stream, Side::Server).unwrap();
    let answered = socket
        .shake_hands(server)
        .and_then(|()| socket.hear(server, |request| request.contains("\r\n\r\n")))
        .and_then(|_| socket.say(server, &response));
    if answered.is_ok() {
        // Closing at once would send a reset after the response if the peer has more to say.
        let _ = socket.stream.shutdown(Shutdown::Write);
        let _ = socket.hear(server, |_| false);
    }
    Served {
        answered,
        observation: socket.observer.observe(&server.key_log()),
    }
}

/// A TCP connection and an observer of it.
struct Socket {
    stream: TcpStream,
    side: Side,
    observer: Observer,
    deadline: Instant,
}

impl Socket {
    fn new(stream: TcpStream, side: Side) -> io::Result<Socket> {
        stream.set_nonblocking(false)?;
        stream.set_nodelay(true)?;
        stream.set_write_timeout(Some(PATIENCE))?;
        Ok(Socket {
            stream,
            side,
            observer: Observer::default(),
            deadline: Instant::now() + PATIENCE,
        })
    }

    fn shake_hands(&mut self, connection: &mut dyn Connection) -> Result<(), String> {
        loop {
            let progress = connection.advance();
            self.transmit(connection)?;
            match progress {
                Ok(Progress::Handshaking) => self.receive(connection)?,
                Ok(Progress::Established) => return Ok(()),
                Err(error) => return Err(error.to_string()),
            }
        }
    }

    fn say(&mut self, connection: &mut dyn Connection, text: &str) -> Result<(), String> {
        let said = connection.write_record(text.as_bytes());
        said.map_err(|error| error.to_string())?;
        self.transmit(connection)
    }

    /// Reads until the text is `enough`.
    fn hear(
        &mut self,
        connection: &mut dyn Connection,
        enough: impl Fn(&str) -> bool,
    ) -> Result<String, String> {
        let mut heard = Vec::new();
        let mut buffer = vec![0; MAX_PLAINTEXT];
        loop {
            let text = String::from_utf8_lossy(&heard);
            if enough(&text) {
                return Ok(text.into_owned());
            }
            match connection.read(&mut buffer) {
                Ok(0) => self.receive(connection)?,
                Ok(length) => heard.extend_from_slice(&buffer[..length]),
                Err(TlsError::Closed) => return Err(format!("closed after {text:?}")),
                Err(error) => return Err(error.to_string()),
            }
        }
    }

    fn transmit(&mut self, connection: &mut dyn Connection) -> Result<(), String> {
        let mut bytes = Vec::new();
        connection.transmit(&mut bytes);
        self.observer.sent(self.side, &bytes);
        let written = self.stream.write_all(&bytes);
        written.map_err(|error| error.to_string())
    }

    fn receive(&mut self, connection: &mut dyn Connection) -> Result<(), String> {
        let mut buffer = [0; 1 << 14];
        let read = self
            .stream
            .set_read_timeout(Some(until(self.deadline)))
            .and_then(|()| self.stream.read(&mut buffer));
        let length = read.map_err(|error| error.to_string())?;
        if length == 0 {
            return Err("the peer is gone".to_owned());
        }
        self.observer.sent(self.side.other(), &buffer[..length]);
        connection.receive(&buffer[..length]);
        Ok(())
    }
}

/// How long it is until then, but never nothing, which a socket would refuse.
fn until(deadline: Instant) -> Duration {
    let left = deadline.saturating_duration_since(Instant::now());
    left.max(Duration::from_millis(1))
}
