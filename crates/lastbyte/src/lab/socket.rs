//! Sockets of both ends: where clients call from, where servers listen, and what both ask of the kernel.

use std::ffi::OsString;
use std::io::{self, IoSlice, IoSliceMut};
use std::net::{Ipv4Addr, SocketAddrV4, TcpListener, TcpStream, UdpSocket};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

use lastbyte_link::{Bytes, EcnCodepoint};
use nix::cmsg_space;
use nix::sys::socket::{
    AddressFamily, Backlog, ControlMessage, ControlMessageOwned, MsgFlags, SockFlag, SockType,
    SockaddrIn, bind, listen, recvmsg, sendmsg, setsockopt, socket, sockopt,
};

use super::sys;
use crate::study::Congestion;

/// Where servers listen.
pub(crate) const SERVER_PORT: u16 = 443;
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
    SockaddrIn::from(client_endpoint(address, attempt))
}

/// Where a client calls from.
pub(crate) fn client_endpoint(address: Ipv4Addr, attempt: Attempt) -> SocketAddrV4 {
    let port = match attempt {
        Attempt::First => CLIENT_PORT,
        Attempt::Second => SECOND_CLIENT_PORT,
    };
    SocketAddrV4::new(address, port)
}

/// Where clients call.
pub(crate) fn server_socket_address(address: Ipv4Addr) -> SockaddrIn {
    SockaddrIn::from(server_endpoint(address))
}

/// Where clients call.
pub(crate) fn server_endpoint(address: Ipv4Addr) -> SocketAddrV4 {
    SocketAddrV4::new(address, SERVER_PORT)
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

/// What a socket of datagrams may hold that nobody has read yet, where the host grants it. quinn's flow control lets a
/// peer send 1.25 MB on a stream, in datagrams of which the kernel counts up to 4 KB each; a server's socket is that of all
/// connections at once.
const DATAGRAM_BUFFER: Bytes = Bytes(16 << 20);

/// A socket of UDP that sends and shows what packets say about congestion.
pub(crate) struct DatagramSocket(UdpSocket);

impl DatagramSocket {
    /// One with this address, as [`open_datagram_socket`] has it.
    pub(crate) fn open(address: &SockaddrIn) -> io::Result<DatagramSocket> {
        let socket = open_datagram_socket(address)?;
        setsockopt(&socket, sockopt::IpRecvTos, &true)?;
        Ok(DatagramSocket(socket))
    }

    /// Sends to the peer that it is connected to, or to this one.
    pub(crate) fn send(
        &self,
        ecn: EcnCodepoint,
        datagram: &[u8],
        to: Option<SocketAddrV4>,
    ) -> io::Result<()> {
        let class = ecn.class();
        let says = [ControlMessage::Ipv4Tos(&class)];
        // A packet says nothing of its own accord.
        let says = if ecn.is_capable() { &says[..] } else { &[] };
        let to = to.map(SockaddrIn::from);
        let datagram = [IoSlice::new(datagram)];
        sendmsg(
            self.0.as_raw_fd(),
            &datagram,
            says,
            MsgFlags::empty(),
            to.as_ref(),
        )?;
        Ok(())
    }

    /// Reads a datagram: how long it is, what its packet says about congestion, and who sent it.
    pub(crate) fn receive(
        &self,
        buffer: &mut [u8],
    ) -> io::Result<(usize, EcnCodepoint, Option<SocketAddrV4>)> {
        let mut shown = cmsg_space!(u8);
        let mut into = [IoSliceMut::new(buffer)];
        let flags = MsgFlags::empty();
        let came = recvmsg::<SockaddrIn>(self.0.as_raw_fd(), &mut into, Some(&mut shown), flags)?;
        let mut ecn = EcnCodepoint::NotEct;
        for message in came.cmsgs()? {
            if let ControlMessageOwned::Ipv4Tos(class) = message {
                ecn = EcnCodepoint::of_class(class);
            }
        }
        Ok((came.bytes, ecn, came.address.map(SocketAddrV4::from)))
    }
}

impl AsFd for DatagramSocket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

/// A non-blocking socket of UDP with this address, whose datagrams are never fragmented.
pub(crate) fn open_datagram_socket(address: &SockaddrIn) -> io::Result<UdpSocket> {
    let socket = socket(
        AddressFamily::Inet,
        SockType::Datagram,
        SockFlag::SOCK_NONBLOCK | SockFlag::SOCK_CLOEXEC,
        None,
    )?;
    let bytes = usize::try_from(DATAGRAM_BUFFER.0).unwrap_or(usize::MAX);
    // Users who may not set what they like get as much as the host grants anybody. What finds no room is counted.
    (setsockopt(&socket, sockopt::RcvBufForce, &bytes))
        .or_else(|_| setsockopt(&socket, sockopt::RcvBuf, &bytes))?;
    (setsockopt(&socket, sockopt::SndBufForce, &bytes))
        .or_else(|_| setsockopt(&socket, sockopt::SndBuf, &bytes))?;
    sys::never_fragment(socket.as_fd())?;
    bind(socket.as_raw_fd(), address)?;
    Ok(UdpSocket::from(socket))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn datagrams_that_a_socket_has_no_room_for_are_counted() {
        let local = SockaddrIn::from(SocketAddrV4::new(Ipv4Addr::LOCALHOST, 0));
        let dropped = |room: Option<usize>| {
            let receiver = open_datagram_socket(&local).unwrap();
            if let Some(room) = room {
                setsockopt(&receiver, sockopt::RcvBuf, &room).unwrap();
            }
            let sender = open_datagram_socket(&local).unwrap();
            sender.connect(receiver.local_addr().unwrap()).unwrap();
            // More than ten windows of ten datagrams, which nobody reads.
            for _ in 0..110 {
                sender.send(&[0; 1200]).unwrap();
            }
            sys::dropped_packets(receiver.as_fd()).unwrap()
        };
        assert_eq!(dropped(None), 0);
        let few = dropped(Some(8 << 10));
        assert!((1..110).contains(&few), "{few}");
    }
}
