//! Where connections come from: an address, or a socket that somebody else has opened.

use std::env;
use std::fmt;
use std::io;
use std::net::{SocketAddr, TcpListener};

use listenfd::ListenFd;
use nix::unistd::{Pid, getppid};
use socket2::{Domain, Protocol, Socket, Type};
use thiserror::Error;

/// Connections that wait to be accepted. The system may have less. Where there are more, they try
/// again in a second.
const BACKLOG: i32 = 4096;

/// The number of the process that gives this one its socket.
pub(super) const HANDED_OVER: &str = "LASTBYTE_HANDED_OVER";

/// Where to listen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Listen {
    /// A socket of our own.
    Address(SocketAddr),
    /// The one socket that systemd has opened.
    Systemd,
    /// The one of this name (`FileDescriptorName=`) among those that systemd has opened.
    Named(String),
}

/// Why there is no socket.
#[derive(Debug, Error)]
pub enum ListenError {
    /// It can't be opened.
    #[error("can't listen on {address}: {error}")]
    Address {
        /// The address.
        address: SocketAddr,
        /// The system's words.
        error: io::Error,
    },
    /// systemd has opened none.
    #[error("systemd has opened no socket for this process: start it through a .socket unit")]
    None,
    /// There are several, or others.
    #[error("{wanted}, and systemd has opened {}: name one with fd:NAME", list(.names))]
    Other {
        /// What was asked for.
        wanted: String,
        /// What there is.
        names: Vec<String>,
    },
    /// What was opened is none for TCP.
    #[error("the socket {name} that systemd has opened can't be used: {error}")]
    Unusable {
        /// Its name.
        name: String,
        /// The system's words.
        error: io::Error,
    },
}

fn list(names: &[String]) -> String {
    let quoted: Vec<_> = names.iter().map(|name| format!("\"{name}\"")).collect();
    quoted.join(", ")
}

impl Listen {
    /// The word that is written for it, if it is no address.
    pub fn of_word(word: &str) -> Option<Listen> {
        match (word, word.strip_prefix("fd:")) {
            ("systemd", _) => Some(Listen::Systemd),
            (_, Some(name)) if !name.is_empty() => Some(Listen::Named(name.to_owned())),
            _ => None,
        }
    }

    /// Opens the socket, or takes it over. It reads and changes the process's environment: call it
    /// before there are threads, and once.
    ///
    /// # Errors
    ///
    /// If there is none.
    pub fn open(&self) -> Result<TcpListener, ListenError> {
        let mut inherited = ListenFd::from_env();
        if handed_over_by().is_some() {
            return take(&mut inherited, 0, "of the process before");
        }
        match self {
            Listen::Address(address) => bind(*address)
                .and_then(|socket| {
                    socket.listen(BACKLOG)?;
                    Ok(socket.into())
                })
                .map_err(|error| ListenError::Address {
                    address: *address,
                    error,
                }),
            Listen::Systemd | Listen::Named(_) => {
                let names = names(inherited.len());
                let at = self.among(&names)?;
                let name = names.get(at).cloned().unwrap_or_default();
                take(&mut inherited, at, &format!("\"{name}\""))
            }
        }
    }

    /// Whether it could be opened, without that anybody can connect. What another process has is
    /// not reported: it may be the one that is to be replaced.
    ///
    /// # Errors
    ///
    /// If the address is not this machine's, or not this user's.
    pub fn check(&self) -> Result<(), ListenError> {
        match self {
            Listen::Address(address) => match bind(*address) {
                Err(error) if error.kind() != io::ErrorKind::AddrInUse => {
                    Err(ListenError::Address {
                        address: *address,
                        error,
                    })
                }
                _ => Ok(()),
            },
            // Whoever asks may have been started by hand.
            Listen::Systemd | Listen::Named(_) => match env::var_os("LISTEN_FDS") {
                Some(_) => Ok(()),
                None => Err(ListenError::None),
            },
        }
    }

    /// Which of the sockets of these names is meant.
    fn among(&self, names: &[String]) -> Result<usize, ListenError> {
        let others = |wanted: String| ListenError::Other {
            wanted,
            names: names.to_vec(),
        };
        match (self, names) {
            (_, []) => Err(ListenError::None),
            (Listen::Named(wanted), _) => names
                .iter()
                .position(|name| name == wanted)
                .ok_or_else(|| others(format!("\"{wanted}\" is asked for"))),
            (_, [_]) => Ok(0),
            (_, several) => Err(others(format!("one of {} is to be used", several.len()))),
        }
    }
}

impl fmt::Display for Listen {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Listen::Address(address) => address.fmt(f),
            Listen::Systemd => f.write_str("systemd"),
            Listen::Named(name) => write!(f, "fd:{name}"),
        }
    }
}

/// The process that has started this one and given it its socket, if one has.
pub(super) fn handed_over_by() -> Option<Pid> {
    let parent = env::var(HANDED_OVER).ok()?.parse::<i32>().ok()?;
    // Whoever that starts besides inherits its environment, too.
    (getppid().as_raw() == parent).then(getppid)
}

/// One name for each socket, as `sd_listen_fds_with_names` has it.
fn names(count: usize) -> Vec<String> {
    let names = env::var("LISTEN_FDNAMES").unwrap_or_default();
    let names = names.split(':').filter(|name| !name.is_empty());
    let mut names: Vec<_> = names.map(str::to_owned).collect();
    names.resize(count, "unknown".to_owned());
    names
}

fn take(inherited: &mut ListenFd, at: usize, name: &str) -> Result<TcpListener, ListenError> {
    let wrong = |error| ListenError::Unusable {
        name: name.to_owned(),
        error,
    };
    let taken = inherited.take_tcp_listener(at).map_err(wrong)?;
    let taken = taken.ok_or(ListenError::None)?;
    // Away from where others look for what they inherit.
    taken.try_clone().map_err(wrong)
}

fn bind(address: SocketAddr) -> io::Result<Socket> {
    let domain = Domain::for_address(address);
    let socket = Socket::new(domain, Type::STREAM, Some(Protocol::TCP))?;
    // A restart does not wait for the connections before it.
    socket.set_reuse_address(true)?;
    socket.bind(&address.into())?;
    Ok(socket)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn sockets_are_chosen_by_name() {
        let names = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
        let named = |name: &str| Listen::of_word(&format!("fd:{name}")).unwrap();
        let two: Vec<String> = names(&["http", "tls"]);
        let one: Vec<String> = names(&["unknown"]);
        assert_eq!(Listen::Systemd.among(&one).unwrap(), 0);
        assert_eq!(named("tls").among(&two).unwrap(), 1);
        for (listen, names, message) in [
            (
                Listen::Systemd,
                &two,
                "one of 2 is to be used, and systemd has opened \"http\", \"tls\": name one with fd:NAME",
            ),
            (
                named("x"),
                &one,
                "\"x\" is asked for, and systemd has opened \"unknown\": name one with fd:NAME",
            ),
            (
                Listen::Systemd,
                &vec![],
                "systemd has opened no socket for this process: start it through a .socket unit",
            ),
        ] {
            assert_eq!(listen.among(names).unwrap_err().to_string(), message);
        }
        assert_eq!(Listen::of_word("fd:"), None);
        assert_eq!(Listen::of_word("127.0.0.1:1"), None);
    }

    #[test]
    fn an_address_is_checked_without_listening() {
        let held = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = held.local_addr().unwrap();
        assert!(Listen::Address(address).check().is_ok(), "it may be ours");
        drop(held);
        assert!(Listen::Address(address).check().is_ok());
        assert!(std::net::TcpStream::connect(address).is_err());
        let elsewhere = Listen::Address("192.0.2.1:1".parse().unwrap());
        assert!(elsewhere.check().is_err());
    }
}
