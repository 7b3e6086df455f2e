//! What is counted of connections that are known as well as they will be.

use crate::cdn::Class;
use crate::handshake::{Carrier, Handshake};
use crate::join::{ConnPart, Connection, History, SslPart};
use crate::profile::Joint;
use crate::row::Transport;
use crate::servers::Servers;
use crate::share::Share;
use crate::sketch::Sketch;
use crate::version::Version;

/// Why a connection is looked at for the last time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    /// It had to go for a later one.
    Expired,
    /// All rows were read.
    AllRead,
}

/// What is known of a connection besides what its rows say.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Verdict {
    pub(crate) carrier: Carrier,
    pub(crate) handshake: Option<Handshake>,
    /// Whether bytes and duration say something.
    pub(crate) usable: bool,
}

/// Rows of one version.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OfVersion {
    /// All of them, but for QUIC.
    pub rows: u64,
    /// Those whose handshake ended well, and of these the resumed ones.
    pub resumed: Share,
}

/// Rows of QUIC.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OfQuic {
    /// Those with a ServerHello, and of these the resumed ones.
    pub resumed: Share,
    /// Those without.
    pub without_server_hello: u64,
    /// Those that had no row of `conn.log`, so that their history had to tell.
    pub told_by_history: u64,
}

/// Connections whose bytes say nothing, by why.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Unusable {
    /// The beginning was not seen, or nobody answered.
    pub state: u64,
    /// Zeek missed bytes.
    pub missed_bytes: u64,
    /// No bytes are logged.
    pub no_bytes: u64,
}

/// Distributions of connections with one class and one kind of handshake.
#[derive(Clone, Debug, Default)]
pub struct Amounts {
    /// Bytes from the server: handshake, records and all responses.
    pub received: Sketch,
    /// Bytes from the client.
    pub sent: Sketch,
    /// Microseconds.
    pub duration: Sketch,
}

/// What is counted.
#[derive(Clone, Debug, Default)]
pub struct Tally {
    versions: [OfVersion; Version::ALL.len()],
    /// QUIC.
    pub quic: OfQuic,
    /// Rows of DTLS.
    pub dtls: u64,
    /// Rows of `ssl.log` that found one of `conn.log`.
    pub joined: u64,
    /// Those that had to go before they found one.
    pub expired: u64,
    /// Those that found none until the end.
    pub unmatched: u64,
    /// Rows of `conn.log` with TLS that found none of `ssl.log`.
    pub conn_alone: u64,
    /// Rows of the script's log that found none of `ssl.log`.
    pub ours_alone: u64,
    /// Joined handshakes whose bytes say nothing.
    pub unusable: Unusable,
    classes: [[Share; 2]; 2],
    amounts: [[Amounts; 2]; 2],
    /// Microseconds, of handshakes with a row of our script's log.
    pub rtt: Sketch,
    handshake_bytes: [Sketch; 2],
    pub(crate) joint: Joint,
}

impl Tally {
    /// Counts a connection.
    pub(crate) fn count(&mut self, connection: &Connection, end: End, servers: &mut Servers) {
        let Some(ssl) = &connection.ssl else {
            self.conn_alone += u64::from(connection.conn.is_some());
            self.ours_alone += u64::from(connection.conn.is_none());
            return;
        };
        match (&connection.conn, end) {
            (Some(_), _) => self.joined += 1,
            (None, End::Expired) => self.expired += 1,
            (None, End::AllRead) => self.unmatched += 1,
        }
        let verdict = verdict(ssl, connection.conn.as_ref());
        self.row(ssl, connection.conn.as_ref(), verdict);
        if verdict.carrier == Carrier::Dtls {
            self.dtls += 1;
            return;
        }
        if let Some(handshake) = verdict.handshake {
            self.handshake(connection, ssl, verdict, handshake);
            servers.count(ssl.server, verdict.carrier, handshake);
        }
    }

    fn row(&mut self, ssl: &SslPart, conn: Option<&ConnPart>, verdict: Verdict) {
        match (verdict.carrier, verdict.handshake) {
            (Carrier::Quic, handshake) => {
                match handshake {
                    Some(handshake) => self.quic.resumed.count(handshake == Handshake::Resumed),
                    None => self.quic.without_server_hello += 1,
                }
                self.quic.told_by_history += u64::from(conn.is_none());
            }
            (Carrier::Tls | Carrier::Dtls, handshake) => {
                if let Some(counts) = self.versions.get_mut(ssl.version as usize) {
                    counts.rows += 1;
                    if let Some(handshake) = handshake {
                        counts.resumed.count(handshake == Handshake::Resumed);
                    }
                }
            }
        }
    }

    fn handshake(
        &mut self,
        connection: &Connection,
        ssl: &SslPart,
        verdict: Verdict,
        handshake: Handshake,
    ) {
        self.classes[ssl.class as usize][place(verdict.carrier)]
            .count(handshake == Handshake::Resumed);
        let ours = connection.ours;
        let rtt = ours.and_then(|ours| ours.rtt).map(|rtt| rtt.get());
        if let Some(rtt) = rtt {
            self.rtt.add(rtt);
        }
        let of_handshake = ours.and_then(|ours| ours.server_bytes);
        if let Some(bytes) = of_handshake {
            self.handshake_bytes[handshake as usize].add(bytes.get());
        }
        let Some(conn) = &connection.conn else {
            return;
        };
        // What a connection over TCP would have been is not known of it.
        if verdict.carrier == Carrier::Quic {
            return;
        }
        let amounts = &mut self.amounts[ssl.class as usize][handshake as usize];
        match (verdict.usable, conn.received) {
            (true, Some(received)) => {
                let received = received.get();
                amounts.received.add(received);
                conn.sent
                    .iter()
                    .for_each(|sent| amounts.sent.add(sent.get()));
                (conn.duration.iter()).for_each(|duration| amounts.duration.add(duration.get()));
                // A population that draws it has a handshake of its own.
                let data = received.saturating_sub(of_handshake.map_or(0, |bytes| bytes.get()));
                self.joint.add(ssl.class, handshake, data, rtt, ssl.time);
            }
            _ if !conn.state.is_whole() => self.unusable.state += 1,
            _ if conn.gaps => self.unusable.missed_bytes += 1,
            _ => self.unusable.no_bytes += 1,
        }
    }

    /// Rows of a version, without QUIC.
    pub fn of_version(&self, version: Version) -> OfVersion {
        self.versions[version as usize]
    }

    /// Resumed handshakes of a class.
    pub fn of_class(&self, class: Class, carrier: Carrier) -> Share {
        match carrier {
            Carrier::Dtls => Share::default(),
            carrier => self.classes[class as usize][place(carrier)],
        }
    }

    /// Handshakes of a class that ended well, and of these the ones over QUIC.
    pub fn over_quic(&self, class: Class) -> Share {
        let [tcp, quic] =
            [Carrier::Tls, Carrier::Quic].map(|carrier| self.of_class(class, carrier));
        Share {
            part: quic.of,
            of: tcp.of + quic.of,
        }
    }

    /// The same of all.
    pub fn all_over_quic(&self) -> Share {
        let classes = Class::ALL.into_iter().map(|class| self.over_quic(class));
        classes.fold(Share::default(), |all, class| Share {
            part: all.part + class.part,
            of: all.of + class.of,
        })
    }

    /// What usable connections of a class carried. `resumed` says after which kind of handshake.
    pub(crate) fn amounts(&self, class: Class, handshake: Handshake) -> &Amounts {
        &self.amounts[class as usize][handshake as usize]
    }

    /// Bytes of encrypted records of the server's handshake.
    pub(crate) fn handshake_bytes(&self, handshake: Handshake) -> &Sketch {
        &self.handshake_bytes[handshake as usize]
    }
}

/// Where classes are counted of what they are counted of.
fn place(carrier: Carrier) -> usize {
    usize::from(carrier == Carrier::Quic)
}

/// What a connection was. QUIC is never `established` in `ssl.log`, so there a ServerHello stands
/// for it.
pub(crate) fn verdict(ssl: &SslPart, conn: Option<&ConnPart>) -> Verdict {
    let carrier = match (ssl.version, conn.map(|conn| conn.transport)) {
        (version, _) if version.is_dtls() => Carrier::Dtls,
        (Version::Tls13 | Version::Unknown, Some(Transport::Udp)) => Carrier::Quic,
        (_, Some(Transport::Udp | Transport::Tcp)) => Carrier::Tls,
        (Version::Tls13, _) if !ssl.established && ssl.history == History::HellosOnly => {
            Carrier::Quic
        }
        _ => Carrier::Tls,
    };
    let counts = match carrier {
        Carrier::Tls | Carrier::Dtls => ssl.established,
        Carrier::Quic => ssl.history != History::NoServerHello,
    };
    let handshake = if ssl.resumed {
        Handshake::Resumed
    } else {
        Handshake::Full
    };
    Verdict {
        carrier,
        handshake: counts.then_some(handshake),
        usable: conn
            .is_some_and(|conn| conn.state.is_whole() && !conn.gaps && conn.received.is_some()),
    }
}
