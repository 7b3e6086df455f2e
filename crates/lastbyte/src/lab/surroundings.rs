//! Fresh surroundings for a block: two network namespaces, each with one TUN
//! device, and nothing between them but the emulator.
//!
//! Nothing here has a name outside this process. The kernel removes the namespaces
//! and devices when the last descriptor closes, so a normal exit, Ctrl-C, a
//! panic and `kill -9` all leave nothing behind.

use std::fs;
use std::io;
use std::net::Ipv4Addr;
use std::os::fd::{AsFd, OwnedFd};
use std::thread;
use std::time::Duration;

use netlink_packet_route::link::LinkAttribute;
use netlink_packet_route::route::RouteMetric;
use nix::sched::{CloneFlags, setns, unshare};

use super::LabError;
use super::netlink::{LOOPBACK, Netlink, Prefix};
use super::sys;
use crate::study::{Cell, Ecn, Hosts, Server, Timestamps};

/// RFC 2544 reserves 198.18.0.0/15 for benchmarks.
pub(crate) const CLIENTS: Prefix = prefix(18, 0, 0, 16);
pub(crate) const SERVERS: Prefix = prefix(19, 0, 0, 16);
pub(crate) const CLIENT_HOST: Ipv4Addr = Ipv4Addr::new(198, 18, 255, 254);
pub(crate) const SERVER_HOST: Ipv4Addr = Ipv4Addr::new(198, 19, 255, 254);
/// Where the server listens.
pub(crate) const SERVER: Ipv4Addr = Ipv4Addr::new(198, 19, 0, 1);
/// How long chains have been valid when a clock that is no machine's begins.
pub(crate) const SINCE_VALID: Duration = Duration::from_secs(60);
/// The most connections that one block can have: each has an address of its own.
pub(crate) const MAX_CONNECTIONS: u32 = 60_000;

const DEVICE: &str = "lastbyte0";
/// Packets that a device holds until the emulator has read them. It must never overflow:
/// losing packets is the link's business.
const DEVICE_QUEUE: u32 = 10_000;

/// TCP settings of both namespaces besides those of [`Hosts`]: Linux's own defaults, written out so
/// that a tuned host doesn't bend a result, and the metrics cache off, which would carry state from
/// one connection to the next.
pub(crate) const SYSCTLS: &[(&str, &str)] = &[
    ("net/ipv6/conf/all/disable_ipv6", "1"),
    ("net/ipv6/conf/default/disable_ipv6", "1"),
    ("net/ipv4/conf/all/rp_filter", "0"),
    ("net/ipv4/conf/default/rp_filter", "0"),
    ("net/ipv4/ip_local_port_range", "1024 65535"),
    ("net/ipv4/tcp_no_metrics_save", "1"),
    ("net/ipv4/tcp_no_ssthresh_metrics_save", "1"),
    ("net/ipv4/tcp_slow_start_after_idle", "1"),
    ("net/ipv4/tcp_sack", "1"),
    ("net/ipv4/tcp_window_scaling", "1"),
    ("net/ipv4/tcp_ecn", "2"),
    ("net/ipv4/tcp_recovery", "1"),
    ("net/ipv4/tcp_early_retrans", "3"),
    ("net/ipv4/tcp_syn_retries", "6"),
    ("net/ipv4/tcp_moderate_rcvbuf", "1"),
    ("net/ipv4/tcp_autocorking", "1"),
    ("net/core/somaxconn", "4096"),
    ("net/ipv4/tcp_max_syn_backlog", "4096"),
];

/// What [`Hosts`] say of TCP.
pub(crate) fn sysctls_of(hosts: &Hosts) -> [(&'static str, String); 3] {
    let timestamps = match hosts.timestamps {
        Timestamps::Off => "0",
        Timestamps::On => "1",
    };
    let buffers = hosts.buffers.sizes();
    let sizes = |begin, most| format!("4096 {begin} {most}");
    [
        ("net/ipv4/tcp_timestamps", timestamps.to_owned()),
        (
            "net/ipv4/tcp_rmem",
            sizes(buffers.receive, buffers.receive_most),
        ),
        ("net/ipv4/tcp_wmem", sizes(buffers.send, buffers.send_most)),
    ]
}

/// What clients of TCP ask for ECN with, if they do: [`SYSCTLS`] has what they are without.
pub(crate) fn sysctl_of_ecn(hosts: &Hosts) -> &'static [(&'static str, &'static str)] {
    match hosts.ecn {
        Ecn::Off => &[],
        Ecn::On => &[("net/ipv4/tcp_ecn", "1")],
    }
}

/// Moves the calling thread between the namespaces of both sides.
pub(super) trait Sides {
    fn enter_client(&self) -> Result<(), LabError>;
    fn enter_server(&self) -> Result<(), LabError>;
}

/// Two namespaces and their devices.
pub(crate) struct Surroundings {
    pub(crate) client: Host,
    pub(crate) server: Host,
}

/// One end.
pub(crate) struct Host {
    pub(crate) namespace: OwnedFd,
    pub(crate) device: OwnedFd,
}

impl Surroundings {
    /// Makes them for one cell.
    pub(crate) fn new(cell: &Cell, sockets: Sockets) -> Result<Self, LabError> {
        let hosts = cell.hosts;
        let client = metrics(cell.client_initcwnd, cell, sockets);
        let server = metrics(cell.initcwnd, cell, sockets);
        Ok(Self {
            client: Host::new(CLIENTS, CLIENT_HOST, SERVERS, client, hosts)?,
            server: Host::new(SERVERS, SERVER_HOST, CLIENTS, server, hosts)?,
        })
    }
}

/// Whose sockets hosts have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sockets {
    /// Ours, each of which is set to its congestion control.
    Ours,
    /// Programs', too, which ask for nothing: their routes say it. No namespace but the first may
    /// have another default than those algorithms that are free for all
    /// (`tcp_allowed_congestion_control`).
    OfPrograms,
}

impl Sockets {
    /// Those of transfers that this server answers.
    pub(crate) fn of(server: Server) -> Sockets {
        if server.is_foreign() {
            Sockets::OfPrograms
        } else {
            Sockets::Ours
        }
    }
}

/// How connections over a host's route begin.
pub(crate) fn metrics(initcwnd: u32, cell: &Cell, sockets: Sockets) -> Vec<RouteMetric> {
    let congestion = match sockets {
        Sockets::Ours => None,
        Sockets::OfPrograms => Some(RouteMetric::CcAlgo(cell.congestion.name().to_owned())),
    };
    let window = RouteMetric::InitCwnd(initcwnd);
    [window].into_iter().chain(congestion).collect()
}

impl Sides for Surroundings {
    fn enter_client(&self) -> Result<(), LabError> {
        self.client.enter()
    }

    fn enter_server(&self) -> Result<(), LabError> {
        self.server.enter()
    }
}

impl Host {
    fn new(
        own: Prefix,
        address: Ipv4Addr,
        peer: Prefix,
        metrics: Vec<RouteMetric>,
        hosts: Hosts,
    ) -> Result<Self, LabError> {
        // A thread of its own: a namespace belongs to the thread that enters it, and
        // the caller stays where it is.
        thread::spawn(move || {
            unshare(CloneFlags::CLONE_NEWNET).map_err(|error| LabError::Namespace(error.into()))?;
            let namespace = fs::File::open("/proc/thread-self/ns/net")
                .map_err(LabError::Namespace)?
                .into();
            let device = sys::open_tun(DEVICE).map_err(LabError::Tun)?;
            configure(own, address, peer, metrics, &hosts).map_err(LabError::Configure)?;
            Ok(Self { namespace, device })
        })
        .join()
        .map_err(|_| LabError::Crashed("setting up a namespace"))?
    }

    /// Has programs' connections to `peer` come from another address of this host, whose namespace
    /// the calling thread is in.
    pub(crate) fn leave_from(address: Ipv4Addr, peer: Prefix, cell: &Cell) -> io::Result<()> {
        let metrics = metrics(cell.client_initcwnd, cell, Sockets::OfPrograms);
        Netlink::open()?.add_route(interface(DEVICE)?, peer, address, metrics)
    }

    /// Moves the calling thread into this host's namespace.
    pub(crate) fn enter(&self) -> Result<(), LabError> {
        setns(self.namespace.as_fd(), CloneFlags::CLONE_NEWNET)
            .map_err(|error| LabError::Namespace(error.into()))
    }
}

/// Address of the client of connection `slot` (0 to `MAX_CONNECTIONS` - 1) of a block.
pub(crate) fn client_address(slot: u32) -> Ipv4Addr {
    Ipv4Addr::from_bits(CLIENTS.address.to_bits() + 1 + slot)
}

/// The inverse of [`client_address`].
pub(crate) fn client_slot(address: Ipv4Addr) -> Option<u32> {
    let slot = address
        .to_bits()
        .checked_sub(CLIENTS.address.to_bits() + 1)?;
    (slot < MAX_CONNECTIONS).then_some(slot)
}

const fn prefix(b: u8, c: u8, d: u8, length: u8) -> Prefix {
    Prefix {
        address: Ipv4Addr::new(198, b, c, d),
        length,
    }
}

fn configure(
    own: Prefix,
    address: Ipv4Addr,
    peer: Prefix,
    metrics: Vec<RouteMetric>,
    hosts: &Hosts,
) -> io::Result<()> {
    set_sysctls(SYSCTLS)?;
    set_sysctls(&sysctls_of(hosts))?;
    set_sysctls(sysctl_of_ecn(hosts))?;
    let device = interface(DEVICE)?;
    let mut netlink = Netlink::open()?;
    netlink.set_up(LOOPBACK, Vec::new())?;
    netlink.add_address(
        device,
        Prefix {
            address,
            length: 32,
        },
    )?;
    netlink.set_up(
        device,
        vec![
            LinkAttribute::Mtu(hosts.mtu.bytes().into()),
            LinkAttribute::TxQueueLen(DEVICE_QUEUE),
            // TCP makes single packets, not super-packets to be cut up later. Else
            // a sender may hold back its last segments until the next acknowledgement
            // (`tcp_tso_should_defer`), which can cost a round trip.
            LinkAttribute::GsoMaxSegs(1),
        ],
    )?;
    netlink.remove_queueing(device)?;
    netlink.add_local_prefix(LOOPBACK, own)?;
    netlink.add_route(device, peer, address, metrics)
}

/// Sets kernel settings of the calling thread's namespace.
pub(crate) fn set_sysctls(settings: &[(&str, impl AsRef<[u8]>)]) -> io::Result<()> {
    for (name, value) in settings {
        let path = format!("/proc/sys/{name}");
        match fs::write(&path, value) {
            Ok(()) => {}
            // Not every kernel has IPv6, and some settings became per-namespace late.
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(io::Error::new(error.kind(), format!("{path}: {error}"))),
        }
    }
    Ok(())
}

fn interface(name: &str) -> io::Result<u32> {
    Ok(nix::net::if_::if_nametoindex(name)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slots_and_addresses_correspond() {
        assert_eq!(client_address(0), Ipv4Addr::new(198, 18, 0, 1));
        for slot in [0, 1, 254, 255, 256, MAX_CONNECTIONS - 1] {
            assert_eq!(client_slot(client_address(slot)), Some(slot));
            assert_ne!(client_address(slot), CLIENT_HOST);
        }
        assert_eq!(client_slot(SERVER), None);
        assert_eq!(client_slot(CLIENT_HOST), None);
    }
}
