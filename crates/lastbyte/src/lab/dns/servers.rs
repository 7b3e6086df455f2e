//! The DNS servers of a block: BIND's `named` in the server's namespace, `unbound` in the client's.

use std::fs::{self, File};
use std::io;
use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use lastbyte_link::Direction;
use netlink_packet_route::link::LinkAttribute;

use super::{DnsError, NAME_SERVER, PORT, Published, Resolver, zone};
use crate::lab::guest::netem;
use crate::lab::netlink::{Netlink, Prefix};
use crate::lab::surroundings::interface;
use crate::lab::{LabError, sys};
use crate::study::Mtu;

/// Where distributions have servers, whatever PATH says.
const PLACES: [&str; 4] = ["/usr/sbin", "/usr/local/sbin", "/usr/bin", "/usr/local/bin"];
const NAMED: &str = "named";
const UNBOUND: &str = "unbound";
/// How long a server may take to start, and the resolver to answer at first.
const PATIENCE: Duration = Duration::from_secs(20);
/// Below the engine's own threads, above all else: elsewhere they would have a machine of their own.
const PRIORITY: i32 = 30;
const LOOK: Duration = Duration::from_millis(10);

/// Moves the calling thread between the namespaces of both sides.
pub(in crate::lab) trait Sides {
    fn enter_client(&self) -> Result<(), LabError>;
    fn enter_server(&self) -> Result<(), LabError>;
}

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
    let find = |program: &'static str| {
        let mut places = PLACES.iter().map(|place| Path::new(place).join(program));
        places
            .find(|path| path.exists())
            .ok_or(DnsError::NotInstalled(program))
    };
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
    let named = Process::start(NAMED, command, folder, (NAME_SERVER, PORT).into())?;

    sides.enter_client()?;
    delay_loopback(published.resolver_rtt)?;
    let configuration = unbound_configuration(&published.name, folder, resolver);
    let configuration = write("unbound.conf", configuration)?;
    let mut command = Command::new(unbound);
    command.args(["-d", "-p", "-c"]).arg(configuration);
    let address = SocketAddrV4::new(Ipv4Addr::LOCALHOST, PORT);
    let unbound = Process::start(UNBOUND, command, folder, address.into())?;

    let resolver = Resolver::connect(address, published, PATIENCE)?;
    let servers = Servers {
        _named: named,
        _unbound: unbound,
    };
    Ok((servers, resolver))
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
    Netlink::open()?.add_address(interface("lo")?, address)
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
        let loopback = interface("lo")?;
        let mut netlink = Netlink::open()?;
        // Packets as they would be on the way to another host.
        let settings = vec![
            LinkAttribute::Mtu(Mtu::ETHERNET.bytes().into()),
            LinkAttribute::GsoMaxSegs(1),
        ];
        netlink.set_up(loopback, settings)?;
        netlink.set_queueing(loopback, "netem", options)
    };
    set_up().map_err(|error| DnsError::NoNetem(error).into())
}

/// A server that runs. It is ended when dropped, and when this thread ends.
struct Process(Child);

impl Process {
    /// Starts it and waits until it listens at `address`.
    fn start(
        program: &'static str,
        mut command: Command,
        folder: &Path,
        address: SocketAddr,
    ) -> Result<Process, DnsError> {
        let failed = |reason: String| DnsError::Start { program, reason };
        let log = folder.join(format!("{program}.log"));
        let output = File::create(&log).map_err(DnsError::Write)?;
        sys::serve_this_thread(&mut command, PRIORITY);
        let child = command
            .current_dir(folder)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(output)
            .spawn()
            .map_err(|error| failed(error.to_string()))?;
        let mut process = Process(child);
        let begun = Instant::now();
        loop {
            if TcpStream::connect_timeout(&address, PATIENCE).is_ok() {
                return Ok(process);
            }
            let ended = process.0.try_wait();
            let ended = ended.map_err(|error| failed(error.to_string()))?.is_some();
            if ended || begun.elapsed() > PATIENCE {
                return Err(failed(last_line(&log)));
            }
            thread::sleep(LOOK);
        }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.0.kill();
        // The kernel spins in `wait` while one of its threads still leaves /proc. Virtual time would stand still
        // then, and with it what lets that thread run; time passes here only after all threads are gone.
        thread::sleep(LOOK);
        let _ = self.0.wait();
    }
}

fn last_line(log: &Path) -> String {
    let said = fs::read(log).unwrap_or_default();
    let said = String::from_utf8_lossy(&said);
    let line = said.lines().rfind(|line| !line.trim().is_empty());
    line.unwrap_or("it said nothing").trim().to_owned()
}
