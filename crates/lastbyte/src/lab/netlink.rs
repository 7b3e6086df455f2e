//! Network interfaces and routes of the calling thread's namespace, through
//! route netlink.

use std::io;
use std::net::Ipv4Addr;
use std::os::fd::{AsRawFd, BorrowedFd};

use netlink_packet_core::{
    DefaultNla, NLM_F_ACK, NLM_F_CREATE, NLM_F_REPLACE, NLM_F_REQUEST, NetlinkMessage,
    NetlinkPayload,
};
use netlink_packet_route::address::{AddressAttribute, AddressMessage};
use netlink_packet_route::link::{
    InfoData, InfoKind, InfoVeth, LinkAttribute, LinkFlags, LinkInfo, LinkMessage,
};
use netlink_packet_route::neighbour::{
    NeighbourAddress, NeighbourAttribute, NeighbourMessage, NeighbourState,
};
use netlink_packet_route::route::{
    RouteAddress, RouteAttribute, RouteFlags, RouteHeader, RouteMessage, RouteMetric,
    RouteProtocol, RouteScope, RouteType,
};
use netlink_packet_route::tc::{TcAttribute, TcHandle, TcMessage};
use netlink_packet_route::{AddressFamily, RouteNetlinkMessage};
use netlink_sys::{Socket, protocols::NETLINK_ROUTE};

/// The number of the loopback interface in each namespace (Linux's `LOOPBACK_IFINDEX`).
pub(crate) const LOOPBACK: u32 = 1;

/// A route netlink socket in the namespace of the thread that opened it.
pub(crate) struct Netlink {
    socket: Socket,
    sequence: u32,
}

/// An Ethernet device to be made.
#[derive(Clone, Copy)]
pub(crate) struct Device<'a> {
    pub(crate) name: &'a str,
    /// Its number among the interfaces of its namespace, in which nothing has it yet.
    pub(crate) index: u32,
    pub(crate) address: MacAddress,
}

/// An Ethernet address.
#[derive(Clone, Copy)]
pub(crate) struct MacAddress(pub(crate) [u8; 6]);

/// An IPv4 prefix.
#[derive(Clone, Copy)]
pub(crate) struct Prefix {
    pub(crate) address: Ipv4Addr,
    pub(crate) length: u8,
}

impl Netlink {
    /// The kernel gives it an address as it sends, and takes what is sent to nobody.
    pub(crate) fn open() -> io::Result<Self> {
        Ok(Self {
            socket: Socket::new(NETLINK_ROUTE)?,
            sequence: 0,
        })
    }

    /// Brings an interface up with these settings.
    pub(crate) fn set_up(
        &mut self,
        interface: u32,
        settings: Vec<LinkAttribute>,
    ) -> io::Result<()> {
        let mut message = LinkMessage::default();
        message.header.index = interface;
        message.header.flags = LinkFlags::Up;
        message.header.change_mask = LinkFlags::Up;
        message.attributes = settings;
        self.request(RouteNetlinkMessage::SetLink(message), 0)
    }

    /// Makes two devices that are joined by a cable, the second one in another namespace.
    pub(crate) fn add_veth(
        &mut self,
        own: Device<'_>,
        peer: Device<'_>,
        namespace: BorrowedFd<'_>,
    ) -> io::Result<()> {
        let mut far = peer.message();
        far.attributes
            .push(LinkAttribute::NetNsFd(namespace.as_raw_fd()));
        let mut message = own.message();
        message.attributes.push(LinkAttribute::LinkInfo(vec![
            LinkInfo::Kind(InfoKind::Veth),
            LinkInfo::Data(InfoData::Veth(InfoVeth::Peer(far))),
        ]));
        self.request(RouteNetlinkMessage::NewLink(message), NLM_F_CREATE)
    }

    /// Tells the link-layer address of a neighbour, once and for all: resolving it would
    /// cost the first packet a round trip.
    pub(crate) fn add_neighbour(
        &mut self,
        interface: u32,
        neighbour: Ipv4Addr,
        address: MacAddress,
    ) -> io::Result<()> {
        let mut message = NeighbourMessage::default();
        message.header.family = AddressFamily::Inet;
        message.header.ifindex = interface;
        message.header.state = NeighbourState::Permanent;
        message.attributes = vec![
            NeighbourAttribute::Destination(NeighbourAddress::Inet(neighbour)),
            NeighbourAttribute::LinkLayerAddress(address.0.to_vec()),
        ];
        self.request(RouteNetlinkMessage::NewNeighbour(message), NLM_F_CREATE)
    }

    /// Adds an address to an interface.
    pub(crate) fn add_address(&mut self, interface: u32, prefix: Prefix) -> io::Result<()> {
        let mut message = AddressMessage::default();
        message.header.family = AddressFamily::Inet;
        message.header.prefix_len = prefix.length;
        message.header.index = interface;
        message.attributes = vec![
            AddressAttribute::Local(prefix.address.into()),
            AddressAttribute::Address(prefix.address.into()),
        ];
        self.request(RouteNetlinkMessage::NewAddress(message), NLM_F_CREATE)
    }

    /// Makes every address of a prefix local, so that a socket can bind any of them
    /// (AnyIP).
    pub(crate) fn add_local_prefix(&mut self, loopback: u32, prefix: Prefix) -> io::Result<()> {
        let mut message = route(prefix, loopback);
        // The kernel looks local routes up in a table of their own (RT_TABLE_LOCAL).
        message.header.table = 255;
        message.header.scope = RouteScope::Host;
        message.header.kind = RouteType::Local;
        self.request(RouteNetlinkMessage::NewRoute(message), NLM_F_CREATE)
    }

    /// Routes a prefix to an interface; connections over it begin as the metrics say.
    pub(crate) fn add_route(
        &mut self,
        interface: u32,
        prefix: Prefix,
        source: Ipv4Addr,
        metrics: Vec<RouteMetric>,
    ) -> io::Result<()> {
        let mut message = route(prefix, interface);
        message
            .attributes
            .push(RouteAttribute::PrefSource(RouteAddress::Inet(source)));
        message.attributes.push(RouteAttribute::Metrics(metrics));
        let flags = NLM_F_CREATE | NLM_F_REPLACE;
        self.request(RouteNetlinkMessage::NewRoute(message), flags)
    }

    /// Routes a prefix to a neighbour.
    pub(crate) fn add_hop(
        &mut self,
        interface: u32,
        prefix: Prefix,
        gateway: Ipv4Addr,
        metrics: Vec<RouteMetric>,
    ) -> io::Result<()> {
        let mut message = route(prefix, interface);
        message.header.scope = RouteScope::Universe;
        message.header.flags = RouteFlags::Onlink;
        message
            .attributes
            .push(RouteAttribute::Gateway(RouteAddress::Inet(gateway)));
        if !metrics.is_empty() {
            message.attributes.push(RouteAttribute::Metrics(metrics));
        }
        self.request(RouteNetlinkMessage::NewRoute(message), NLM_F_CREATE)
    }

    /// Gives an interface a queueing discipline with these `TCA_OPTIONS`, or new options to
    /// the one that it has.
    pub(crate) fn set_queueing(
        &mut self,
        interface: u32,
        kind: &str,
        options: Vec<u8>,
    ) -> io::Result<()> {
        const TCA_OPTIONS: u16 = 2;
        let mut message = TcMessage::default();
        message.header.index = interface as i32;
        message.header.parent = TcHandle::ROOT;
        message.header.handle = TcHandle { major: 1, minor: 0 };
        message.attributes = vec![
            TcAttribute::Kind(kind.to_owned()),
            TcAttribute::Other(DefaultNla::new(TCA_OPTIONS, options)),
        ];
        self.request(
            RouteNetlinkMessage::NewQueueDiscipline(message),
            NLM_F_CREATE,
        )
    }

    /// Takes the queueing discipline away from an interface.
    pub(crate) fn remove_queueing(&mut self, interface: u32) -> io::Result<()> {
        let mut message = TcMessage::default();
        message.header.index = interface as i32;
        message.header.parent = TcHandle::ROOT;
        message.attributes = vec![TcAttribute::Kind("noqueue".to_owned())];
        self.request(
            RouteNetlinkMessage::NewQueueDiscipline(message),
            NLM_F_CREATE | NLM_F_REPLACE,
        )
    }

    fn request(&mut self, message: RouteNetlinkMessage, flags: u16) -> io::Result<()> {
        self.sequence += 1;
        let mut request = NetlinkMessage::from(message);
        request.header.flags = NLM_F_REQUEST | NLM_F_ACK | flags;
        request.header.sequence_number = self.sequence;
        request.finalize();
        let mut bytes = vec![0; request.buffer_len()];
        request.serialize(&mut bytes);
        self.socket.send(&bytes, 0)?;
        // An error has the request with it.
        const HEADERS: usize = 64;
        let mut answer = Vec::with_capacity(HEADERS + bytes.len());
        self.socket.recv(&mut answer, 0)?;
        let answer = NetlinkMessage::<RouteNetlinkMessage>::deserialize(&answer)
            .map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error.to_string()))?;
        match answer.payload {
            NetlinkPayload::Error(error) if error.code.is_some() => Err(error.to_io()),
            _ => Ok(()),
        }
    }
}

impl Device<'_> {
    fn message(self) -> LinkMessage {
        let mut message = LinkMessage::default();
        message.header.index = self.index;
        message.attributes = vec![
            LinkAttribute::IfName(self.name.to_owned()),
            LinkAttribute::Address(self.address.0.to_vec()),
        ];
        message
    }
}

fn route(prefix: Prefix, interface: u32) -> RouteMessage {
    let mut message = RouteMessage::default();
    message.header.address_family = AddressFamily::Inet;
    message.header.destination_prefix_length = prefix.length;
    message.header.table = RouteHeader::RT_TABLE_MAIN;
    message.header.protocol = RouteProtocol::Static;
    message.header.scope = RouteScope::Link;
    message.header.kind = RouteType::Unicast;
    message.attributes = vec![
        RouteAttribute::Destination(RouteAddress::Inet(prefix.address)),
        RouteAttribute::Oif(interface),
    ];
    message
}
