//! The DNS servers of a block: BIND's `named` in the server's namespace, `unbound` in the client's.

use std::fs;
use std::io;
use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use lastbyte_link::Direction;
use netlink_packet_route::link::LinkAttribute;

use super::{DnsError, NAME_SERVER, PORT, Published, Resolver, zone};
use crate::lab::LabError;
use crate::lab::netem;
use crate::lab::netlink::{LOOPBACK, Netlink, Prefix};
use crate::lab::process::{self, Priority, Process, StartError};
use crate::lab::surroundings::Sides;
use crate::study::Mtu;

const NAMED: &str = "named";
const UNBOUND: &str = "unbound";
/// How long a server may take to start, and the resolver to answer at first.
const PATIENCE: Duration = Duration::from_secs(20);

/// The servers of one block. They end with it.
pub(in crate::lab) struct Servers {
    _named: Process,
    _unbound: Process,
}

/// Where the programs are.
///
/// # Errors
///
/// [`DnsError::NotInstalled`] with the first that is not.
pub fn find_programs() -> Result<[PathBuf; 2], DnsError> {
    let find = |program| process::installed(program).ok_or(DnsError::NotInstalled(program));
    Ok([find(NAMED)?, find(UNBOUND)?])
}

/// Starts both with their files in `folder`, and connects to the resolver, which asks from the address
/// `resolver`. It has been asked once, so it knows the name server and, unless its cache is to be cold,
/// what clients ask for. The calling thread is in the client's namespace then.
pub(in crate::lab) fn start(
    published: &Published,
    resolver: Ipv4Addr,
    folder: &Path,
    sides: &dyn Sides,
) -> Result<(Servers, Resolver), LabError> {
    let [named, unbound] = find_programs()?;
    let write = |name: &str, content: String| {
        let path = folder.join(name);
        fs::write(&path, content).map_err(DnsError::Write)?;
        Ok::<_, DnsError>(path)
    };
    write(ZONE, zone::zone(published))?;

    sides.enter_server()?;
    add_name_server().map_err(LabError::Configure)?;
    let configuration = write("named.conf", named_configuration(&published.name, folder))?;
    let mut command = Command::new(named);
    command
        .args(["-g", "-n", "1", "-U", "1", "-c"])
        .arg(configuration);
    let named = start_server(NAMED, command, folder, (NAME_SERVER, PORT).into())?;

    sides.enter_client()?;
    delay_loopback(published.resolver_rtt)?;
    let configuration = unbound_configuration(&published.name, folder, resolver);
    let configuration = write("unbound.conf", configuration)?;
    let mut command = Command::new(unbound);
    command.args(["-d", "-p", "-c"]).arg(configuration);
    let address = SocketAddrV4::new(Ipv4Addr::LOCALHOST, PORT);
    let unbound = start_server(UNBOUND, command, folder, address.into())?;

    let resolver = Resolver::connect(address, published, PATIENCE)?;
    let servers = Servers {
        _named: named,
        _unbound: unbound,
    };
    Ok((servers, resolver))
}

fn start_server(
    program: &'static str,
    command: Command,
    folder: &Path,
    address: SocketAddr,
) -> Result<Process, DnsError> {
    let started =
        Process::start(program, command, folder, Priority::RealTime).and_then(|mut process| {
            process.wait_for(address, PATIENCE)?;
            Ok(process)
        });
    started.map_err(|error| match error {
        StartError::Write(error) => DnsError::Write(error),
        StartError::Ended(reason) => DnsError::Start { program, reason },
    })
}

const ZONE: &str = "zone";

fn named_configuration(name: &str, folder: &Path) -> String {
    let folder = folder.display();
    format!(
        r#"options {{
    directory "{folder}";
    pid-file none;
    session-keyfile none;
    recursion no;
    dnssec-validation no;
    notify no;
    listen-on port {PORT} {{ {NAME_SERVER}; }};
    listen-on-v6 {{ none; }};
}};
controls {{ }};
zone "{name}" {{ type primary; file "{ZONE}"; }};
"#
    )
}

fn unbound_configuration(name: &str, folder: &Path, resolver: Ipv4Addr) -> String {
    let folder = folder.display();
    let localhost = Ipv4Addr::LOCALHOST;
    let ttl = zone::TTL;
    format!(
        r#"server:
    directory: "{folder}"
    chroot: ""
    username: ""
    pidfile: ""
    use-syslog: no
    logfile: ""
    num-threads: 1
    interface: {localhost}
    access-control: {localhost}/8 allow
    do-ip6: no
    outgoing-interface: {resolver}
    # The zone is of no parent that could vouch for it.
    module-config: "iterator"
    cache-max-ttl: {ttl}
    cache-max-negative-ttl: {ttl}
    # Clients keep their connection.
    tcp-idle-timeout: {idle}
stub-zone:
    name: "{name}"
    stub-addr: {NAME_SERVER}
remote-control:
    control-enable: no
"#,
        idle = u64::from(ttl) * 1000
    )
}

/// A name server looks for its address among those of devices.
fn add_name_server() -> io::Result<()> {
    let address = Prefix {
        address: NAME_SERVER,
        length: 32,
    };
    Netlink::open()?.add_address(LOOPBACK, address)
}

/// Puts so much time between the client and its resolver.
fn delay_loopback(rtt: Duration) -> Result<(), LabError> {
    if rtt.is_zero() {
        return Ok(());
    }
    // Each packet passes once.
    let direction = Direction {
        delay: rtt / 2,
        ..Direction::default()
    };
    let options = netem::options(&direction, 0, netem::Table::Send)?;
    let set_up = || {
        let mut netlink = Netlink::open()?;
        // Packets as they would be on the way to another host.
        let settings = vec![
            LinkAttribute::Mtu(Mtu::ETHERNET.bytes().into()),
            LinkAttribute::GsoMaxSegs(1),
        ];
        netlink.set_up(LOOPBACK, settings)?;
        netlink.set_queueing(LOOPBACK, "netem", options)
    };
    set_up().map_err(|error| DnsError::NoNetem(error).into())
}
