//! Asks servers.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::time::Duration;

use tokio::net::{TcpStream, UdpSocket};
use tokio::sync::Mutex;
use tokio::time::{Instant, timeout};

use super::message::{Answer, MessageError, Response, UDP_PAYLOAD};
use super::stream::{Connection, Received};
use super::{DnsError, Question, TlsServer, random_id, resolv_conf};

/// How long a server is given for an answer, unless configured otherwise.
const PATIENCE: Duration = Duration::from_secs(3);

/// A server, and how it is asked.
#[derive(Clone, Debug)]
pub struct Server {
    /// Where it is.
    pub address: SocketAddr,
    /// Whether it is asked over TLS.
    pub tls: Option<TlsServer>,
}

/// How an answer came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Transport {
    /// In a datagram.
    Udp,
    /// Over a TCP connection.
    Tcp,
    /// Over a TLS connection.
    Tls,
}

/// What is tried first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum First {
    /// A datagram, then TCP if the answer does not fit.
    Udp,
    /// TCP at once, for answers that won't fit a datagram.
    Tcp,
}

/// An answer, and how it came.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reply {
    /// The answer.
    pub answer: Answer,
    /// How it came.
    pub transport: Transport,
    /// The size in bytes of the DNS message that it came in.
    pub message_bytes: usize,
    /// From the question to the answer.
    pub took: Duration,
}

/// Asks DNS servers. It keeps a connection to each that it needed one to.
#[derive(Debug)]
pub struct Client {
    servers: Vec<Upstream>,
    patience: Duration,
}

#[derive(Debug)]
struct Upstream {
    server: Server,
    connection: Mutex<Last>,
}

/// What became of the last connection.
#[derive(Debug)]
enum Last {
    /// There was none.
    None,
    /// It is open, or was.
    Made(Connection),
    /// TLS failed: a certificate that is not accepted is not accepted again.
    Refused { reason: String, at: Instant },
}

/// How long a server whose TLS failed is not connected to again.
const REST: Duration = Duration::from_secs(10);

impl Client {
    /// Asks the first of these, and the others in turn when it does not answer.
    pub fn new(servers: impl IntoIterator<Item = Server>) -> Client {
        let upstream = |server| Upstream {
            server,
            connection: Mutex::new(Last::None),
        };
        Client {
            servers: servers.into_iter().map(upstream).collect(),
            patience: PATIENCE,
        }
    }

    /// Asks the resolvers that the system asks.
    ///
    /// # Errors
    ///
    /// If /etc/resolv.conf can't be read.
    pub fn system() -> io::Result<Client> {
        let text = match std::fs::read_to_string("/etc/resolv.conf") {
            Err(error) if error.kind() == io::ErrorKind::NotFound => String::new(),
            text => text?,
        };
        Ok(Client::new(
            resolv_conf::servers(&text).into_iter().map(Server::from),
        ))
    }

    /// Gives a server this long for an answer, each time that it is asked.
    #[must_use]
    pub fn with_patience(self, patience: Duration) -> Client {
        Client { patience, ..self }
    }

    /// Asks. If there is no answer, or none that can be used, asks once more: the next server if
    /// there is another one.
    ///
    /// # Errors
    ///
    /// If no server has an answer.
    pub async fn ask(&self, question: &Question, first: First) -> Result<Reply, DnsError> {
        let attempts = u32::try_from(self.servers.len().max(2)).unwrap_or(u32::MAX);
        let mut last = DnsError::NoServer;
        for (upstream, attempt) in self.servers.iter().cycle().zip(1..=attempts) {
            let start = Instant::now();
            let query = timeout(self.patience, upstream.ask(question, first, self.patience));
            last = match query.await {
                Ok(Ok((answer, transport, message_bytes))) => {
                    return Ok(Reply {
                        answer,
                        transport,
                        message_bytes,
                        took: start.elapsed(),
                    });
                }
                Ok(Err(error)) => error,
                Err(_) => DnsError::Timeout {
                    server: upstream.server.address,
                    attempts: attempt,
                    each: self.patience,
                },
            };
        }
        Err(last)
    }
}

impl Upstream {
    async fn ask(
        &self,
        question: &Question,
        first: First,
        patience: Duration,
    ) -> Result<(Answer, Transport, usize), DnsError> {
        if self.server.tls.is_none() && first == First::Udp {
            let (response, bytes) = self.ask_by_datagram(question).await?;
            if let Response::Answer(answer) = response {
                return Ok((answer, Transport::Udp, bytes));
            }
        }
        let transport = match self.server.tls {
            Some(_) => Transport::Tls,
            None => Transport::Tcp,
        };
        match self.ask_by_connection(question, patience).await? {
            (Ok(Response::Answer(answer)), bytes) => Ok((answer, transport, bytes)),
            (Ok(Response::Truncated), _) => Err(self.message(MessageError::Malformed(
                "truncated although it came over a connection".to_owned(),
            ))),
            (Err(error), _) => Err(self.message(error)),
        }
    }

    /// From a port that the kernel draws at random.
    async fn ask_by_datagram(&self, question: &Question) -> Result<(Response, usize), DnsError> {
        let unspecified: IpAddr = match self.server.address {
            SocketAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
            SocketAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
        };
        let id = random_id()?;
        let query = question
            .query(id)
            .map_err(|error| self.io(io::Error::other(error)))?;
        let socket = UdpSocket::bind((unspecified, 0))
            .await
            .map_err(|error| self.io(error))?;
        // The kernel drops what comes from elsewhere.
        socket
            .connect(self.server.address)
            .await
            .map_err(|error| self.io(error))?;
        socket.send(&query).await.map_err(|error| self.io(error))?;
        let mut buffer = [0; 4 * UDP_PAYLOAD as usize];
        loop {
            let length = socket
                .recv(&mut buffer)
                .await
                .map_err(|error| self.io(error))?;
            match question.response(id, buffer.get(..length).unwrap_or_default()) {
                Ok(response) => return Ok((response, length)),
                // The answer may still come.
                Err(MessageError::Other) => {}
                Err(error) => return Err(self.message(error)),
            }
        }
    }

    async fn ask_by_connection(
        &self,
        question: &Question,
        patience: Duration,
    ) -> Result<Received, DnsError> {
        // A server may close a connection at any time (RFC 7766, section 6.2.4): a new one is worth
        // a try.
        for _ in 0..2 {
            let connection = self.connection(patience).await?;
            if let Some(received) = connection.ask(question).await {
                return Ok(received);
            }
        }
        Err(self.io(io::Error::new(
            io::ErrorKind::ConnectionAborted,
            "the server closes the connection instead of answering",
        )))
    }

    /// The connection that is open, or a new one.
    async fn connection(&self, patience: Duration) -> Result<Connection, DnsError> {
        let mut last = self.connection.lock().await;
        match &*last {
            Last::Made(connection) if !connection.is_closed() => return Ok(connection.clone()),
            Last::Refused { reason, at } if at.elapsed() < REST => {
                return Err(self.tls(reason.clone()));
            }
            _ => {}
        }
        let stream = TcpStream::connect(self.server.address)
            .await
            .and_then(|stream| stream.set_nodelay(true).map(|()| stream))
            .map_err(|error| self.io(error))?;
        let connection = match &self.server.tls {
            None => Connection::new(stream, patience),
            Some(tls) => match tls.connect(stream).await {
                Ok(stream) => Connection::new(stream, patience),
                Err(error) => {
                    let (reason, at) = (error.to_string(), Instant::now());
                    *last = Last::Refused {
                        reason: reason.clone(),
                        at,
                    };
                    return Err(self.tls(reason));
                }
            },
        };
        *last = Last::Made(connection.clone());
        Ok(connection)
    }

    fn tls(&self, reason: String) -> DnsError {
        DnsError::Tls {
            server: self.server.address,
            reason,
        }
    }

    fn io(&self, error: io::Error) -> DnsError {
        DnsError::Io {
            server: self.server.address,
            error,
        }
    }

    fn message(&self, error: MessageError) -> DnsError {
        DnsError::Message {
            server: self.server.address,
            error,
        }
    }
}

impl From<SocketAddr> for Server {
    /// Asked without TLS.
    fn from(address: SocketAddr) -> Server {
        Server { address, tls: None }
    }
}
