//! Sockets of both ends: where clients call from, where servers listen, and what both ask of the kernel.

use std::ffi::OsString;
use std::io;
use std::net::{Ipv4Addr, SocketAddrV4, TcpListener, TcpStream};
use std::os::fd::{AsRawFd, OwnedFd};

use nix::sys::socket::{
    AddressFamily, Backlog, SockFlag, SockType, SockaddrIn, bind, listen, setsockopt, socket,
    sockopt,
};

use crate::study::Congestion;

const SERVER_PORT: u16 = 443;
const CLIENT_PORT: u16 = 20_000;
const SECOND_CLIENT_PORT: u16 = CLIENT_PORT + 1;
const BACKLOG: i32 = 4096;

/// Which of a client's connections it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Attempt {
    First,
    /// After the first one has failed.
    Second,
}

impl Attempt {
    /// The one that a client calls from this port with.
    pub(crate) fn of_port(port: u16) -> Attempt {
        match port {
            SECOND_CLIENT_PORT => Attempt::Second,
            _ => Attempt::First,
        }
    }
}

/// Where a client with this address calls from. Each connection has a port of its own, so that nothing that the
/// first one left meets the second.
pub(crate) fn client_socket_address(address: Ipv4Addr, attempt: Attempt) -> SockaddrIn {
    let port = match attempt {
        Attempt::First => CLIENT_PORT,
        Attempt::Second => SECOND_CLIENT_PORT,
    };
    SockaddrIn::from(SocketAddrV4::new(address, port))
}

/// Where clients call.
pub(crate) fn server_socket_address(address: Ipv4Addr) -> SockaddrIn {
    SockaddrIn::from(SocketAddrV4::new(address, SERVER_PORT))
}

pub(crate) fn listen_on(congestion: Congestion) -> io::Result<TcpListener> {
    let socket = open_socket(congestion)?;
    let address = SockaddrIn::from(SocketAddrV4::new(Ipv4Addr::UNSPECIFIED, SERVER_PORT));
    bind(socket.as_raw_fd(), &address)?;
    listen(&socket, Backlog::new(BACKLOG)?)?;
    Ok(TcpListener::from(OwnedFd::from(socket)))
}

/// A non-blocking socket with TCP_NODELAY and the congestion control asked for, which
/// accepted sockets inherit.
pub(crate) fn open_socket(congestion: Congestion) -> io::Result<TcpStream> {
    let socket = socket(
        AddressFamily::Inet,
        SockType::Stream,
        SockFlag::SOCK_NONBLOCK | SockFlag::SOCK_CLOEXEC,
        None,
    )?;
    let socket = TcpStream::from(socket);
    socket.set_nodelay(true)?;
    setsockopt(
        &socket,
        sockopt::TcpCongestion,
        &OsString::from(congestion.to_string()),
    )?;
    Ok(socket)
}
