//! The guest's network: a client and a server, and a router between them that is the link.

use std::fs::File;
use std::io;
use std::net::Ipv4Addr;
use std::os::fd::{AsFd, OwnedFd};

use lastbyte_link::{Direction, ETHERNET_HEADER, Link, Seed, Side};
use netlink_packet_route::link::LinkAttribute;
use netlink_packet_route::route::RouteMetric;
use nix::sched::{CloneFlags, setns, unshare};

use crate::lab::netem::{self, Table};
use crate::lab::netlink::{Device, LOOPBACK, MacAddress, Netlink, Prefix};
use crate::lab::shortcuts::Shortcuts;
use crate::lab::surroundings::{
    CLIENT_HOST, CLIENTS, SERVER_HOST, SERVERS, SYSCTLS, Sides, Sockets, metrics, set_sysctls,
    sysctl_of_ecn, sysctls_of,
};
use crate::lab::{LabError, shared, sys};
use crate::study::{Cell, Gso, Preset, Tso};

/// An interface of a namespace. Its number is chosen here, where nothing has it yet: to ask for one takes three calls.
#[derive(Clone, Copy)]
struct Interface {
    name: &'static str,
    index: u32,
}

/// Each end's device in its own namespace.
const DEVICE: Interface = Interface {
    name: "lastbyte0",
    index: 10,
};
const ROUTER_TO_CLIENT: Interface = Interface {
    name: "client",
    index: 10,
};
const ROUTER_TO_SERVER: Interface = Interface {
    name: "server",
    index: 11,
};
/// The router's addresses on both sides (RFC 5737), which no end has for itself.
const ROUTER_CLIENT_SIDE: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 1);
const ROUTER_SERVER_SIDE: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 2);

/// Three namespaces, joined by two cables.
pub(super) struct Network {
    client: OwnedFd,
    server: OwnedFd,
    /// Its cables end with it.
    router: OwnedFd,
    link: Emulation,
}

/// The two devices whose queueing disciplines are the link.
struct Emulation {
    /// Toward the client, toward the server: see [`shared::end`].
    ends: [Emulated; 2],
    shortcuts: Shortcuts,
}

struct Emulated {
    netlink: Netlink,
    interface: Interface,
    direction: Direction,
    /// What it has been given last, if that draws nothing: it is as it was then, once it is empty.
    options: Option<Vec<u8>>,
}

/// One end, from its own point of view.
struct EndHost {
    own: Prefix,
    address: Ipv4Addr,
    mac: MacAddress,
    peer: Prefix,
    router: Ipv4Addr,
    router_mac: MacAddress,
    metrics: Vec<RouteMetric>,
}

impl Network {
    /// Makes it for one cell.
    pub(super) fn new(
        cell: &Cell,
        sockets: Sockets,
        shortcuts: Shortcuts,
    ) -> Result<Self, LabError> {
        let client = namespace()?;
        let server = namespace()?;
        let router = namespace()?;
        let [client_side, server_side] = sides(cell, sockets);
        let configure = LabError::Configure;

        within(&router, || {
            let mut netlink = Netlink::open()?;
            for (near, side, namespace) in [
                (ROUTER_TO_CLIENT, &client_side, &client),
                (ROUTER_TO_SERVER, &server_side, &server),
            ] {
                let own = near.device(side.router_mac);
                let far = DEVICE.device(side.mac);
                named("veth", netlink.add_veth(own, far, namespace.as_fd()))?;
            }
            Ok(())
        })
        .map_err(configure)?;
        within(&client, || client_side.configure(cell)).map_err(configure)?;
        within(&server, || server_side.configure(cell)).map_err(configure)?;
        within(&router, || {
            set_sysctls(&[("net/ipv4/ip_forward", "1")])?;
            route(ROUTER_TO_CLIENT, &client_side, cell)?;
            route(ROUTER_TO_SERVER, &server_side, cell)
        })
        .map_err(configure)?;

        let emulated = |namespace: &OwnedFd, interface: Interface, direction: &Direction| {
            within(namespace, || {
                Ok(Emulated {
                    netlink: Netlink::open()?,
                    interface,
                    direction: direction.clone(),
                    options: None,
                })
            })
            .map_err(configure)
        };
        let [forward, backward] = directions(cell);
        let ends = match cell.preset {
            Preset::Network => [
                emulated(&router, ROUTER_TO_CLIENT, &backward)?,
                emulated(&router, ROUTER_TO_SERVER, &forward)?,
            ],
            // Its authors' harness has no router.
            Preset::Published2024 => [
                emulated(&server, DEVICE, &backward)?,
                emulated(&client, DEVICE, &forward)?,
            ],
        };
        let mut network = Self {
            client,
            server,
            router,
            link: Emulation { ends, shortcuts },
        };
        network.link.set(0, Seed(0), Table::Send)?;
        Ok(network)
    }

    /// Does something with the router's end of the cable to `side`, by its number.
    pub(super) fn at_router<T>(
        &self,
        side: Side,
        action: impl FnOnce(u32) -> io::Result<T>,
    ) -> io::Result<T> {
        let interface = match side {
            Side::Client => ROUTER_TO_CLIENT,
            Side::Server => ROUTER_TO_SERVER,
        };
        within(&self.router, || action(interface.index))
    }

    /// Gives both directions the link of `cell`, whose distribution of jitter they have already,
    /// and the luck of connection `index`; `seed` is that of the link's luck.
    pub(super) fn set(&mut self, index: u32, cell: &Cell, seed: Seed) -> Result<(), LabError> {
        let [forward, backward] = directions(cell);
        for (toward, direction) in [(Side::Client, backward), (Side::Server, forward)] {
            self.link.ends[shared::end(toward)].direction = direction;
        }
        self.link.set(index, seed, Table::Keep)
    }
}

impl Sides for Network {
    fn enter_client(&self) -> Result<(), LabError> {
        enter(&self.client).map_err(LabError::Namespace)
    }

    fn enter_server(&self) -> Result<(), LabError> {
        enter(&self.server).map_err(LabError::Namespace)
    }
}

impl Interface {
    fn device(self, address: MacAddress) -> Device<'static> {
        let Interface { name, index } = self;
        Device {
            name,
            index,
            address,
        }
    }
}

impl Emulation {
    fn set(&mut self, index: u32, seed: Seed, table: Table) -> Result<(), LabError> {
        for toward in [Side::Client, Side::Server] {
            let end = &mut self.ends[shared::end(toward)];
            let seed = seed.part(&format!("netem {index} {toward:?}")).0;
            let options = netem::options(&end.direction, seed, table)?;
            if self.shortcuts.remembered(end.options.as_ref()) == Some(&options) {
                continue;
            }
            end.options = (!netem::draws(&end.direction)).then(|| options.clone());
            let set = end
                .netlink
                .set_queueing(end.interface.index, "netem", options);
            named("netem", set).map_err(LabError::Configure)?;
        }
        Ok(())
    }
}

impl EndHost {
    fn configure(&self, cell: &Cell) -> io::Result<()> {
        set_sysctls(SYSCTLS)?;
        set_sysctls(&sysctls_of(&cell.hosts))?;
        set_sysctls(sysctl_of_ecn(&cell.hosts))?;
        if cell.preset == Preset::Published2024 {
            set_sysctls(PUBLISHED_2024)?;
        }
        let device = DEVICE.index;
        let mut netlink = Netlink::open()?;
        named("loopback", netlink.set_up(LOOPBACK, Vec::new()))?;
        named("address", netlink.add_address(device, host(self.address)))?;
        let mut settings = vec![mtu(cell)];
        if cell.gso == Gso::Off {
            settings.push(LinkAttribute::GsoMaxSegs(1));
        }
        named("device", netlink.set_up(device, settings))?;
        if cell.hosts.tso == Tso::Off {
            named("TSO", sys::turn_off_tso(DEVICE.name))?;
        }
        let neighbour = netlink.add_neighbour(device, self.router, self.router_mac);
        named("neighbour", neighbour)?;
        let local = netlink.add_local_prefix(LOOPBACK, self.own);
        named("local addresses", local)?;
        let hop = netlink.add_hop(device, self.peer, self.router, self.metrics.clone());
        named("route", hop)
    }
}

/// What the harness of the time-to-last-byte paper leaves as Linux has it, against [`SYSCTLS`].
const PUBLISHED_2024: &[(&str, &str)] = &[("net/ipv4/tcp_no_metrics_save", "0")];

/// netem's settings for a cell's link, toward the server and toward the client.
fn directions(cell: &Cell) -> [Direction; 2] {
    /// A ping and its Ethernet header.
    const PING: usize = 84 + ETHERNET_HEADER;
    let Link { forward, backward } = &cell.link;
    [forward, backward].map(|direction| {
        let mut direction = direction.clone();
        if let (Preset::Published2024, Some(rate)) = (cell.preset, direction.rate) {
            // Its authors' harness takes the delay from a ping, and adds the rate to that: a
            // ping's serialisation counts twice.
            direction.delay += rate.serialisation(PING);
        }
        direction
    })
}

fn sides(cell: &Cell, sockets: Sockets) -> [EndHost; 2] {
    // Locally administered addresses.
    let mac = |last| MacAddress([2, 0, 0, 0, 0, last]);
    [
        EndHost {
            own: CLIENTS,
            address: CLIENT_HOST,
            mac: mac(1),
            peer: SERVERS,
            router: ROUTER_CLIENT_SIDE,
            router_mac: mac(2),
            metrics: metrics(cell.client_initcwnd, cell, sockets),
        },
        EndHost {
            own: SERVERS,
            address: SERVER_HOST,
            mac: mac(4),
            peer: CLIENTS,
            router: ROUTER_SERVER_SIDE,
            router_mac: mac(3),
            metrics: metrics(cell.initcwnd, cell, sockets),
        },
    ]
}

/// The router's part: everyone on this side is reached through the host there.
fn route(to: Interface, side: &EndHost, cell: &Cell) -> io::Result<()> {
    let device = to.index;
    let mut netlink = Netlink::open()?;
    let address = netlink.add_address(device, host(side.router));
    named("router's address", address)?;
    let device_up = netlink.set_up(device, vec![mtu(cell)]);
    named("router's device", device_up)?;
    let neighbour = netlink.add_neighbour(device, side.address, side.mac);
    named("router's neighbour", neighbour)?;
    let hop = netlink.add_hop(device, side.own, side.address, Vec::new());
    named("router's route", hop)
}

fn mtu(cell: &Cell) -> LinkAttribute {
    LinkAttribute::Mtu(cell.hosts.mtu.bytes().into())
}

/// Says what could not be done.
fn named<T>(what: &str, result: io::Result<T>) -> io::Result<T> {
    result.map_err(|error| io::Error::new(error.kind(), format!("{what}: {error}")))
}

fn host(address: Ipv4Addr) -> Prefix {
    Prefix {
        address,
        length: 32,
    }
}

fn namespace() -> Result<OwnedFd, LabError> {
    unshare(CloneFlags::CLONE_NEWNET).map_err(|error| LabError::Namespace(error.into()))?;
    let file = File::open("/proc/thread-self/ns/net").map_err(LabError::Namespace)?;
    Ok(file.into())
}

fn enter(namespace: &OwnedFd) -> io::Result<()> {
    Ok(setns(namespace.as_fd(), CloneFlags::CLONE_NEWNET)?)
}

/// Runs `action` in a namespace; the thread stays there.
fn within<T>(namespace: &OwnedFd, action: impl FnOnce() -> io::Result<T>) -> io::Result<T> {
    enter(namespace)?;
    action()
}
