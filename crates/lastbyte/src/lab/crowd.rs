//! What else is on the link of a connection: bulk transfers that began before it, and connections that begin with it.
//!
//! A bulk transfer is a connection of TCP, without TLS, of which one end always has something to send. Both of its ends are
//! threads of their own, which block in the kernel: in virtual time nothing else has them wait, so each arm meets the same
//! transfers at the same nanosecond until its own connection begins. They call from the client's own address, so that a link
//! which is a connection's own is theirs, too.

use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, Shutdown, SocketAddrV4, TcpListener, TcpStream};
use std::ops::Range;
use std::os::fd::{AsRawFd, OwnedFd};
use std::sync::{Arc, OnceLock};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use lastbyte_link::{Direction, Passes, Side, Time, Trace, format_duration};
use nix::sys::socket::{self, Backlog, SockaddrIn, bind, connect, listen, setsockopt, sockopt};

use super::LabError;
use super::socket::open_socket;
use super::starts::{self, Starts};
use super::surroundings::{MAX_CONNECTIONS, SERVER, Sides};
use crate::study::{
    Cell, Congestion, CpuTime, CrossFlow, CrossTraffic, CrossWay, Crowd, Experiment, Parameter,
    Preset, Study, is_modelled,
};

/// About how many packets the transfers beside one connection have, with what acknowledges them.
pub(crate) fn packets(cell: &Cell) -> u32 {
    /// While the connection goes on.
    const REST: Duration = Duration::from_secs(1);
    let crowd = &cell.crowd;
    let ways = CrossWay::ALL.into_iter().filter(|way| {
        let mut flows = crowd.cross_traffic.flows().iter();
        flows.any(|flow| flow.way == *way)
    });
    let each = ways.map(|way| {
        let direction = direction(cell, way);
        let packet = direction.rate.map_or(Duration::from_millis(1), |rate| {
            rate.serialisation(cell.hosts.mtu.bytes().into())
        });
        let time = crowd.cross_lead.mul_f64(1.5) + REST;
        1.5 * time.as_secs_f64() / packet.as_secs_f64().max(1e-9)
    });
    each.sum::<f64>() as u32
}

/// Where bytes that go this way go.
fn direction(cell: &Cell, way: CrossWay) -> &Direction {
    match way {
        CrossWay::Down => &cell.link.backward,
        CrossWay::Up => &cell.link.forward,
    }
}

/// Of how many connections a block of a study has to be a multiple, so that those that begin together are of one.
pub(crate) fn together(study: &Study) -> u32 {
    let experiments = study.measures.iter().map(|measure| &measure.experiment);
    let cells = experiments.flat_map(|experiment| &experiment.cells);
    cells.fold(1, |all, cell| common_multiple(all, cell.crowd.at_once))
}

/// The least common multiple of both.
fn common_multiple(one: u32, other: u32) -> u32 {
    let (mut divisor, mut rest) = (one.max(1), other.max(1));
    while rest != 0 {
        (divisor, rest) = (rest, divisor % rest);
    }
    (one.max(1) / divisor).saturating_mul(other.max(1))
}

/// Whether all connections of a study can be measured in virtual time with what else is on their links.
///
/// # Errors
///
/// What can't, with the hint.
pub(crate) fn check(study: &Study) -> Result<(), String> {
    if together(study) > MAX_CONNECTIONS {
        return Err(
            "the values of at_once have no common multiple that a block holds: have each be one of the others'".to_owned(),
        );
    }
    for measure in &study.measures {
        let cells = &measure.experiment.cells;
        let begins_nothing = |cell: &Cell| cell.crowd.cross_traffic.flows().is_empty();
        let is_usual = |cell: &Cell| cell.crowd.cross_lead == Crowd::USUAL_LEAD;
        if cells.iter().all(begins_nothing) && !cells.iter().all(is_usual) {
            return Err(format!(
                "measure {:?}: cross_lead is how long before cross traffic begins, and there is none: give cross_traffic, or leave \
                 cross_lead out",
                measure.id
            ));
        }
        for cell in &measure.experiment.cells {
            check_cell(&measure.experiment, cell)
                .map_err(|problem| format!("measure {:?}, {cell}: {problem}", measure.id))?;
        }
    }
    Ok(())
}

fn check_cell(experiment: &Experiment, cell: &Cell) -> Result<(), String> {
    let crowd = &cell.crowd;
    if crowd.is_alone() {
        return Ok(());
    }
    let mut arms = experiment.arms.iter();
    if let Some(arm) = arms.find(|arm| is_modelled(arm, experiment.quic_in)) {
        return Err(format!(
            "arm {:?}: the model of QUIC has one connection on a link: write quic_in = \"guest\" (--quic-in guest)",
            arm.name
        ));
    }
    let mut arms = experiment.arms.iter();
    if let Some(arm) = arms.find(|arm| arm.is_of_programs_over_quic()) {
        return Err(format!(
            "arm {:?}: programs over QUIC have their link to themselves: leave them out",
            arm.name
        ));
    }
    for flow in crowd.cross_traffic.flows() {
        let direction = direction(cell, flow.way);
        let is_limited =
            direction.rate.is_some() || direction.trace.is_some() || cell.draws(Parameter::RATE);
        if !is_limited {
            return Err(
                "nothing limits the rate that cross_traffic would share: give the link a rate or a trace".to_owned(),
            );
        }
    }
    let ways = [&cell.link.forward, &cell.link.backward];
    let mut traces = ways.into_iter().filter_map(|way| way.trace.as_ref());
    let is_used_up = |trace: &&Trace| {
        let has_lead = !crowd.cross_traffic.flows().is_empty() && !crowd.cross_lead.is_zero();
        trace.passes() == Passes::Once && has_lead
    };
    if let Some(trace) = traces.find(is_used_up) {
        return Err(format!(
            "trace \"{trace}\" begins with the cross traffic, {} before a connection at least, and does not begin again: leave \
             once out, or write cross_lead = \"0s\" (--cross-lead 0s)",
            format_duration(crowd.cross_lead)
        ));
    }
    if crowd.at_once == 1 {
        return Ok(());
    }
    if cell.preset == Preset::Published2024 {
        return Err(format!(
            "the preset {} has one connection after the other: leave at_once or preset out",
            cell.preset
        ));
    }
    let connections = experiment.connections.most();
    if !connections.is_multiple_of(crowd.at_once) {
        let whole = connections.next_multiple_of(crowd.at_once);
        return Err(format!(
            "{connections} connections are no whole number of {} at once: ask for {whole}",
            crowd.at_once
        ));
    }
    if experiment.cpu == CpuTime::Calibrated {
        return Err(
            "with cpu = \"calibrated\" connections would wait for each other's computing: leave at_once or cpu out"
                .to_owned(),
        );
    }
    let mut arms = experiment.arms.iter();
    if let Some(arm) = arms.find(|arm| arm.delivery.asks_dns()) {
        return Err(format!(
            "arm {:?}: what DNS delivers is asked for by one connection at a time: leave at_once out",
            arm.name
        ));
    }
    match &cell.population {
        Some(population) if population.connections_per_user.get() % crowd.at_once != 0 => {
            Err(format!(
                "{} connections of a user at once, who has {}: write connections_per_user = {}",
                crowd.at_once, population.connections_per_user, crowd.at_once
            ))
        }
        _ => Ok(()),
    }
}

/// Where the servers of bulk transfers listen, and where their clients call from: at these, and one after the other.
const SERVER_PORT: u16 = 5_000;
const CLIENT_PORT: u16 = 21_000;

/// Which bulk transfer a client calls from this port for, if it does for one.
pub(crate) fn cross_flow_of_port(port: u16) -> Option<u16> {
    let number = port.checked_sub(CLIENT_PORT)?;
    (usize::from(number) < CrossTraffic::MOST).then_some(number)
}

/// The bulk transfers beside one connection, or beside those that begin with it. They end when it is dropped.
pub(crate) struct Crossing {
    flows: Vec<Flow>,
}

impl Crossing {
    /// Sleeps until connection `index`, whose client has this address, may start, with what else is on its link begun before.
    /// The calling thread is in the client's namespace then.
    pub(crate) fn begin(
        crowd: &Crowd,
        sides: &impl Sides,
        address: Ipv4Addr,
        starts: Starts,
        index: u32,
        alive: &dyn Fn(),
    ) -> Result<Crossing, LabError> {
        /// What transfers do in it takes some seconds over the fastest links.
        const SIGN: Duration = Duration::from_secs(1);
        if crowd.cross_traffic.flows().is_empty() {
            starts.wait(index).map_err(LabError::Socket)?;
            return Ok(Crossing { flows: Vec::new() });
        }
        // A window rises and falls for seconds: connections are to meet it anywhere.
        let lead = crowd.cross_lead + starts.drawn(crowd.cross_lead, index);
        let start = starts.after(lead, index);
        let lead = u64::try_from(lead.as_nanos()).unwrap_or(u64::MAX);
        let begin = Time(start.0.saturating_sub(lead));
        starts::sleep_until(begin).map_err(LabError::Socket)?;
        let mut flows = Vec::new();
        for (number, flow) in (0..).zip(crowd.cross_traffic.flows()) {
            sides.enter_server()?;
            let listener = listen_for(flow.congestion, number).map_err(LabError::Socket)?;
            sides.enter_client()?;
            let begun = Flow::begin(*flow, listener, address, number);
            flows.push(begun.map_err(LabError::Socket)?);
        }
        let mut now = begin;
        while now < start {
            now = start.min(now + SIGN);
            starts::sleep_until(now).map_err(LabError::Socket)?;
            alive();
        }
        Ok(Crossing { flows })
    }
}

impl Drop for Crossing {
    /// Both ends give up at once, and nothing more is sent but that.
    fn drop(&mut self) {
        for flow in &self.flows {
            flow.wake();
        }
        for flow in self.flows.drain(..) {
            for end in flow.ends {
                // What it could not do, its transfer has not done.
                let _ = end.join();
            }
        }
    }
}

/// Connections by those that begin together: so many, and of the last what is left.
pub(crate) fn groups(connections: &Range<u32>, at_once: u32) -> impl Iterator<Item = Range<u32>> {
    let end = connections.end;
    let firsts = connections.clone().step_by(at_once.max(1) as usize);
    firsts.map(move |first| first..first.saturating_add(at_once.max(1)).min(end))
}

/// A transfer, and what its threads block in.
struct Flow {
    listener: Arc<TcpListener>,
    client: Arc<TcpStream>,
    server: Arc<OnceLock<TcpStream>>,
    ends: [JoinHandle<()>; 2],
}

impl Flow {
    fn begin(
        CrossFlow { congestion, way }: CrossFlow,
        listener: TcpListener,
        address: Ipv4Addr,
        number: u16,
    ) -> io::Result<Flow> {
        let client = open(congestion)?;
        let from = SocketAddrV4::new(address, CLIENT_PORT + number);
        bind(client.as_raw_fd(), &SockaddrIn::from(from))?;
        let listener = Arc::new(listener);
        let client = Arc::new(client);
        let server = Arc::new(OnceLock::new());
        let ends = [
            thread::spawn({
                let (listener, server) = (listener.clone(), server.clone());
                move || {
                    if let Ok((accepted, _)) = listener.accept() {
                        Role::of(Side::Server, way).play(server.get_or_init(|| accepted));
                    }
                }
            }),
            thread::spawn({
                let client = client.clone();
                move || {
                    let to = SocketAddrV4::new(SERVER, SERVER_PORT + number);
                    if connect(client.as_raw_fd(), &SockaddrIn::from(to)).is_ok() {
                        Role::of(Side::Client, way).play(&client);
                    }
                }
            }),
        ];
        Ok(Flow {
            listener,
            client,
            server,
            ends,
        })
    }

    /// Has its threads end, whatever they wait for.
    fn wake(&self) {
        let _ = socket::shutdown(self.listener.as_raw_fd(), socket::Shutdown::Both);
        let _ = self.client.shutdown(Shutdown::Both);
        if let Some(server) = self.server.get() {
            let _ = server.shutdown(Shutdown::Both);
        }
    }
}

/// What an end of a transfer does until that is over.
#[derive(Clone, Copy)]
enum Role {
    Sends,
    Receives,
}

impl Role {
    fn of(end: Side, way: CrossWay) -> Role {
        match (end, way) {
            (Side::Server, CrossWay::Down) | (Side::Client, CrossWay::Up) => Role::Sends,
            (Side::Server, CrossWay::Up) | (Side::Client, CrossWay::Down) => Role::Receives,
        }
    }

    fn play(self, mut socket: &TcpStream) {
        /// As much as programs write and read at once.
        const AT_ONCE: usize = 64 << 10;
        let mut buffer = vec![0; AT_ONCE];
        loop {
            let moved = match self {
                Role::Sends => socket.write(&buffer),
                Role::Receives => socket.read(&mut buffer),
            };
            if !moved.is_ok_and(|bytes| bytes > 0) {
                return;
            }
        }
    }
}

/// A socket that blocks, and that is gone at once when it is closed.
fn open(congestion: Congestion) -> io::Result<TcpStream> {
    let socket = open_socket(congestion)?;
    socket.set_nonblocking(false)?;
    let at_once = libc::linger {
        l_onoff: 1,
        l_linger: 0,
    };
    setsockopt(&socket, sockopt::Linger, &at_once)?;
    Ok(socket)
}

/// Listens in the calling thread's namespace; what is accepted has its settings.
fn listen_for(congestion: Congestion, number: u16) -> io::Result<TcpListener> {
    let socket = open(congestion)?;
    let at = SocketAddrV4::new(Ipv4Addr::UNSPECIFIED, SERVER_PORT + number);
    bind(socket.as_raw_fd(), &SockaddrIn::from(at))?;
    listen(&socket, Backlog::new(1)?)?;
    Ok(TcpListener::from(OwnedFd::from(socket)))
}

#[cfg(test)]
mod tests;
