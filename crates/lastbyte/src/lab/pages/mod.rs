//! Servers that people run, in the server's namespace; and page loads, by a browser in the client's.

mod browser;
mod computing;
mod http;
mod meter;
mod object;
mod programs;
mod servers;
mod turns;
mod wire;

use std::fs;
use std::io;
use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use lastbyte_exchange::HandshakeFlight;
use lastbyte_link::{Bytes, Time};
use lastbyte_page::cdp::{self, Failure, Frames, Load, Tasks, Visit};
use lastbyte_page::{Site, SiteError};
use lastbyte_pki::{Chain, Store};
use lastbyte_tls::KeyLog;
use openssl::error::ErrorStack;

use self::browser::{Browser, Silence};
pub(super) use self::computing::{Computing, Timing};
use self::meter::Meter;
pub(super) use self::object::ForeignServer;
use self::programs::BrowserPrograms;
pub(super) use self::programs::{Finder, Programs};
use self::servers::Serving;
use self::turns::{of_network, passages};
pub(super) use self::wire::ObservedPacket;
use self::wire::{Handshake, ended, had, handshakes};
use super::process::{Process, StartError};
use super::surroundings::Sides;
use super::{LabError, PreparedArm, SHARED_MEMORY, sys};
use crate::results::{
    Cause, Dns, Exchange, Lateness, Loaded, Measurement, Outcome, PageLoad, Row, SeenConnection,
    Times, TransportStats, check_page_wire,
};
use crate::study::{Arm, ArmChain, Cache, Cell};

/// Between the two visits of a warm load: servers have closed idle connections by then.
const PAUSE: Duration = servers::IDLE.saturating_add(Duration::from_secs(2));
/// How long nothing happens after the load event until a page is done.
const QUIET: Duration = Duration::from_millis(500);
/// How long the browser may take for an answer of its own.
const PATIENCE: Duration = Duration::from_secs(60);
/// After how many reads of what a browser says a load is one that takes long: a usual page has fewer.
const READS: u32 = 4000;
/// Where the document's origin is; the others follow.
const FIRST: Ipv4Addr = Ipv4Addr::new(198, 19, 0, 1);

/// Why no page can be loaded, or a server that people run can't answer.
#[derive(Debug, thiserror::Error)]
pub enum PageError {
    /// There is no Chromium, or what was named is none.
    #[error(
        "page loads need Chromium, and {0:?} is none that runs: install it with `apt-get install chromium`, or name it in \
         LASTBYTE_CHROMIUM"
    )]
    NoBrowser(PathBuf),
    /// Another program is not there.
    #[error("{by} needs {program}: {hint}")]
    NotInstalled {
        /// What needs it.
        by: &'static str,
        /// Which.
        program: &'static str,
        /// How it is had.
        hint: &'static str,
    },
    /// A program lacks what an arm needs.
    #[error("{program} ({version}) has no {what}: that takes {least} or newer")]
    TooOld {
        /// Which.
        program: String,
        /// What it is.
        version: String,
        /// What it lacks.
        what: &'static str,
        /// What has it.
        least: String,
    },
    /// A program lacks what an arm needs, and so does every newer one.
    #[error(
        "{program} ({version}) has no {what}, nor has a newer one: write server=node or server=go"
    )]
    Never {
        /// Which.
        program: String,
        /// What it is.
        version: String,
        /// What it lacks.
        what: &'static str,
    },
    /// The browser's store does not take a root.
    #[error("the browser's store of trusted roots does not take the chain's: {0}")]
    Root(String),
    /// There is too little memory.
    #[error(
        "a guest with other people's programs needs {} MB of memory ({left}): free some, or make {SHARED_MEMORY} larger",
        memory.0 >> 20
    )]
    Memory {
        /// What it needs.
        memory: Bytes,
        /// How much each folder has left.
        left: String,
    },
    /// Another one, of an arm.
    #[error("arm {arm:?}: {error}")]
    Arm {
        /// Which.
        arm: String,
        /// What it is.
        error: Box<PageError>,
    },
    /// A user's own chain is for too few names.
    #[error(
        "the page has {origins} origins, and the chain is for {names} of them: use a chain with more names, or fewer origins"
    )]
    Names {
        /// Of the page.
        origins: usize,
        /// In the certificate.
        names: usize,
    },
    /// There is no such page.
    #[error("{0}")]
    Page(String),
    /// Files can't be written.
    #[error("can't write the files of a server: {0}")]
    Write(#[source] io::Error),
    /// The site can't be written.
    #[error("can't write the site of a page: {0}")]
    Site(#[source] SiteError),
    /// OpenSSL can't write a certificate.
    #[error("can't write a chain: {}", lastbyte_pki::openssl_reason(.0))]
    Crypto(#[source] ErrorStack),
    /// A program did not start, or ended.
    #[error("{program} did not start: {reason}")]
    Start {
        /// Which.
        program: String,
        /// The last that it said.
        reason: String,
    },
}

impl PageError {
    /// Lastbyte's own server is no program: who gets here has not asked whether it is ours.
    pub(super) const OURS: PageError = PageError::NotInstalled {
        by: "a page load",
        program: "another server than Lastbyte's own",
        hint: "write server=node",
    };

    /// Says which arm it is of.
    pub(super) fn of_arm(self, arm: &Arm) -> PageError {
        PageError::Arm {
            arm: arm.name.clone(),
            error: Box::new(self),
        }
    }

    /// What is wrong, whichever arm it is of.
    #[must_use]
    pub fn itself(&self) -> &PageError {
        match self {
            PageError::Arm { error, .. } => error.itself(),
            other => other,
        }
    }

    fn start(program: &str, error: StartError) -> PageError {
        match error {
            StartError::Write(error) => PageError::Write(error),
            StartError::Ended(reason) => PageError::Start {
                program: program.to_owned(),
                reason,
            },
        }
    }
}

/// One of a page's origins.
pub(super) struct Origin {
    name: String,
    address: Ipv4Addr,
    chain: Chain,
}

/// The origins of a cell's page, each with a chain of its own, like the arm's.
pub(super) fn origins(
    arm: &PreparedArm,
    cell: &Cell,
    store: &Store,
) -> Result<Vec<Origin>, LabError> {
    let page = page(cell)?;
    let count = usize::from(page.origins());
    let chain_of = |place: usize| -> Result<(String, Chain), LabError> {
        match &arm.arm.chain {
            _ if place == 0 => Ok((arm.chain.server_name().to_owned(), arm.chain.clone())),
            ArmChain::Made(spec) => {
                let mut spec = spec.clone();
                spec.origin = u8::try_from(place).unwrap_or(u8::MAX);
                let chain = store.chain(&spec)?;
                Ok((chain.server_name().to_owned(), chain))
            }
            ArmChain::Pem(_) => {
                let names = names(&arm.chain);
                let name = names.get(place).cloned();
                let few = PageError::Names {
                    origins: count,
                    names: names.len(),
                };
                Ok((name.ok_or(few)?, arm.chain.clone()))
            }
        }
    };
    let origin = |place: usize| {
        let (name, chain) = chain_of(place)?;
        Ok(Origin {
            name,
            address: Ipv4Addr::from_bits(FIRST.to_bits() + place as u32),
            chain,
        })
    };
    (0..count).map(origin).collect()
}

/// The names that a certificate is for, but for those of many hosts; the first one is the server's.
fn names(chain: &Chain) -> Vec<String> {
    let mut names = vec![chain.server_name().to_owned()];
    let certificate = chain.certificates().first();
    let others = certificate.and_then(|certificate| certificate.subject_alt_names());
    for name in others.iter().flatten().filter_map(|name| name.dnsname()) {
        if !name.contains('*') && !names.iter().any(|listed| listed == name) {
            names.push(name.to_owned());
        }
    }
    names
}

fn page(cell: &Cell) -> Result<lastbyte_page::Page, PageError> {
    let source = cell.page.as_ref();
    let source = source.ok_or_else(|| PageError::Page("the cell has no page".to_owned()))?;
    source.page(cell.origins).map_err(PageError::Page)
}

/// From when on the chains of all origins are valid, since 1970.
pub(super) fn valid_from(origins: &[Origin]) -> Duration {
    let from = origins.iter().map(|origin| origin.chain.valid_from());
    from.max().unwrap_or_default()
}

/// What came of a navigation.
pub(super) struct Navigation {
    load: Result<Load, String>,
    /// Processor time of browser and server, where computing takes time.
    cpu: Option<Duration>,
}

/// Browser and server of a block.
pub(super) struct Stage<'a> {
    arm: &'a Arm,
    cache: Cache,
    programs: &'a BrowserPrograms,
    origins: &'a [Origin],
    folder: &'a Path,
    url: String,
    timeout: Duration,
    computing: Computing,
    slowdown: u32,
    server: Process,
    browser: Option<Browser>,
    protocol: cdp::Browser,
    /// What of the browser's secrets was read already.
    keys_read: usize,
}

impl<'a> Stage<'a> {
    /// Starts the server, and then the browser. Their files are in `folder`. The calling thread is in the client's namespace
    /// then.
    pub(super) fn set(
        arm: &'a Arm,
        cell: &Cell,
        programs: &'a Programs,
        origins: &'a [Origin],
        folder: &'a Path,
        timing: Timing,
        sides: &dyn Sides,
    ) -> Result<Stage<'a>, LabError> {
        let Timing { timeout, computing } = timing;
        let page = page(cell)?;
        let none = || PageError::NoBrowser(PathBuf::new());
        let browser = programs.browser.as_ref().ok_or_else(none)?;
        let name = |place: u8| {
            let origin = origins.get(usize::from(place));
            origin.map_or_else(String::new, |origin| origin.name.clone())
        };
        let site = Site::framed(&page, servers::framing(arm.server), name);
        sides.enter_server()?;
        let serving = Serving {
            server: arm.server,
            program: &programs.server,
            group: arm.group,
            origins,
            idle: servers::IDLE,
            computing,
        };
        let server = serving.start(&site, folder)?;
        sides.enter_client()?;
        let mut stage = Stage {
            arm,
            cache: cell.cache,
            programs: browser,
            origins,
            folder,
            url: format!("https:{}", site.document()),
            timeout,
            computing,
            slowdown: computing.throttling(cell.cpu_slowdown),
            server,
            browser: None,
            protocol: cdp::Browser::new(),
            keys_read: 0,
        };
        stage.ready()?;
        Ok(stage)
    }

    /// Has a browser that can take a visit.
    pub(super) fn ready(&mut self) -> Result<(), LabError> {
        if self.browser.is_none() || !self.protocol.is_ready() {
            self.browser = None;
            let browser = Browser::start(self.programs, self.origins, self.folder, self.computing)?;
            self.browser = Some(browser);
            self.protocol = cdp::Browser::new();
            self.keys_read = 0;
        }
        Ok(())
    }

    /// Loads the page. `begins` is called just before the visit that counts, `goes_on` now and then in one that takes long.
    pub(super) fn load(
        &mut self,
        tasks: Tasks,
        begins: &mut dyn FnMut() -> Result<(), LabError>,
        goes_on: &mut dyn FnMut(),
    ) -> Result<Navigation, LabError> {
        let visit = Visit {
            url: self.url.clone(),
            cache: match self.cache {
                Cache::Cold => cdp::Cache::Cold,
                Cache::Warm => cdp::Cache::Warm { pause: PAUSE },
            },
            frames: Frames::All,
            tasks,
            slowdown: self.slowdown,
            timeout: self.timeout,
            quiet: QUIET,
            patience: PATIENCE * self.computing.times(),
        };
        if self.cache == Cache::Cold {
            begins()?;
        }
        let Some(browser) = &mut self.browser else {
            return Ok(Navigation {
                load: Err(Failure::Ended.to_string()),
                cpu: None,
            });
        };
        let programs = [self.server.id(), browser.process.id()];
        let protocol = &mut self.protocol;
        let mut line = None;
        let mut began = None;
        let mut cpu = None;
        let mut reads = 0_u32;
        protocol.begin(visit, now());
        let outcome = loop {
            match (protocol.is_loading(), &began) {
                (true, None) if tasks == Tasks::Traced => began = Some(Meter::read(&programs)),
                (false, Some(began)) if cpu.is_none() => {
                    cpu = Some(Meter::read(&programs).since(began));
                }
                _ => {}
            }
            let outgoing = protocol.outgoing();
            if !outgoing.is_empty()
                && let Err(silence) = browser.send(&outgoing)
            {
                line = last_line(silence);
                protocol.closed();
            }
            if let Some(outcome) = protocol.outcome() {
                break outcome;
            }
            let wake = protocol.wake().unwrap_or_else(|| now() + PATIENCE);
            match browser.read(Time(wake.as_nanos() as u64)) {
                Ok(bytes) => {
                    protocol.receive(bytes, now());
                    reads = reads.wrapping_add(1);
                    if reads.is_multiple_of(READS) {
                        goes_on();
                    }
                }
                Err(Silence::Late) => {
                    if protocol.is_resting() {
                        begins()?;
                    }
                    protocol.tick(now());
                }
                Err(silence) => {
                    line = last_line(silence);
                    protocol.closed();
                }
            }
        };
        let load = outcome.map_err(|failure| match line {
            Some(line) => format!("{failure}: {line}"),
            None => failure.to_string(),
        });
        Ok(Navigation { load, cpu })
    }

    /// What reads what its navigations have left.
    pub(super) fn reader(&self) -> Reader<'a> {
        Reader {
            arm: self.arm,
            cache: self.cache,
            origins: self.origins,
        }
    }

    /// The secrets that the browser has written since they were read last.
    pub(super) fn fresh_keys(&mut self) -> KeyLog {
        let path = self.browser.as_ref().map(|browser| browser.keys.as_path());
        let text = path.and_then(|path| fs::read_to_string(path).ok());
        let text = text.unwrap_or_default();
        let mut keys = KeyLog::default();
        let fresh = text.get(self.keys_read..).unwrap_or_default();
        fresh.lines().for_each(|line| keys.push_line(line));
        self.keys_read = text.len();
        keys
    }
}

fn failed(cause: Cause, reason: &str) -> Outcome {
    Outcome::Failed {
        cause,
        reason: reason.to_owned(),
    }
}

/// Reads what navigations have left.
#[derive(Clone, Copy)]
pub(super) struct Reader<'a> {
    arm: &'a Arm,
    cache: Cache,
    origins: &'a [Origin],
}

impl Reader<'_> {
    /// What a navigation has come to, of which these packets were seen, and these secrets were written. No packet
    /// is missing at the client unless some were `unseen`; where none is seen at the server, computing takes no time.
    pub(super) fn read(
        &self,
        index: u32,
        block: u32,
        navigation: Navigation,
        packets: &[ObservedPacket<'_>],
        unseen: u64,
        keys: &KeyLog,
    ) -> (Row, Loaded) {
        let Navigation { load, cpu } = navigation;
        let found = handshakes(packets, keys);
        let first = found.first().map_or(Time(0), |first| first.began);
        let name = |handshake: &Handshake| {
            let mut origins = self.origins.iter();
            let origin = origins.find(|origin| origin.address == handshake.server());
            origin.map_or_else(String::new, |origin| origin.name.clone())
        };
        let ended = ended(&found);
        let of_document = ended.iter().find(|handshake| handshake.server() == FIRST);
        let exchange =
            of_document.map_or_else(Exchange::default, |handshake| handshake.exchange.clone());
        let mut numbered = ended.iter().enumerate();
        let checked = numbered.try_for_each(|(number, handshake)| {
            let before = ended.get(..number).unwrap_or_default();
            let cache = had(self.cache, before, handshake.server());
            check_page_wire(self.arm, cache, &handshake.exchange)
                .map_err(|problem| format!("the connection to {} {problem}", name(handshake)))
        });
        let connections = found.iter().map(|handshake| SeenConnection {
            name: name(handshake),
            began_ns: handshake.began.0.saturating_sub(first.0),
            group: handshake.exchange.negotiated.group,
            signature: handshake.exchange.negotiated.signature,
            cipher_suite: handshake.exchange.negotiated.cipher_suite,
            certificates: handshake.exchange.negotiated.certificate_count(),
            certificate_bytes: handshake.exchange.certificate_bytes(),
            resumed: handshake.exchange.negotiated.resumption
                == crate::results::Resumption::Resumed,
            client_hello_wire_bytes: handshake.exchange.sent(HandshakeFlight::ClientHello),
            server_flight_wire_bytes: handshake.exchange.sent(HandshakeFlight::Server),
        });
        let connections: Vec<SeenConnection> = connections.collect();
        let missing = load.as_ref().ok().and_then(|load| {
            let request = load.failures().next()?;
            let why = request.failure.as_deref().unwrap_or("no response");
            Some(format!("{} was not had: {why}", request.url))
        });
        let outcome = match (&load, &missing, &checked) {
            (Err(reason), ..) => failed(Cause::PageLoad, reason),
            (_, Some(reason), _) => failed(Cause::PageResource, reason),
            (.., Err(reason)) => failed(Cause::PageHandshake, reason),
            (Ok(_), None, Ok(())) => Outcome::Completed,
        };
        let load = load.ok();
        let times = load.as_ref().map_or_else(Times::default, |load| Times {
            connect: load.connect,
            handshake: load.handshake,
            server_handshake: None,
            ttfb: Some(load.ttfb),
            ttlb: None,
        });
        let mut page = load
            .as_ref()
            .map_or_else(PageLoad::default, |load| PageLoad {
                ttfb_computing: of_document
                    .filter(|_| answers_at_once(load))
                    .and_then(|document| network_time(packets, document))
                    .map(|network| load.ttfb.saturating_sub(network)),
                fcp: Some(load.fcp),
                lcp: load.lcp,
                load: Some(load.load),
                speed_index: load.speed_index,
                fcp_cpu: load.computing.map(|computing| computing.fcp),
                lcp_cpu: load.computing.and_then(|computing| computing.lcp),
                load_cpu: load.computing.map(|computing| computing.load),
                programs_cpu: cpu,
                bytes: u32::try_from(load.wire().0).ok(),
                connections: None,
                requests: u32::try_from(load.from_network().count()).ok(),
            });
        if unseen == 0 {
            page.connections = u32::try_from(connections.len()).ok();
        }
        let row = Row {
            index,
            block,
            outcome,
            times,
            exchange,
            dns: Dns::default(),
            measurement: Measurement::Load(page),
            transport: TransportStats::default(),
            lateness: Lateness::default(),
        };
        let loaded = Loaded {
            index,
            load,
            connections,
        };
        (row, loaded)
    }
}

/// Whether the document is what was asked for first, and not where that has sent the browser to.
fn answers_at_once(load: &Load) -> bool {
    let first = load.requests.first();
    first.is_some_and(|first| first.first_byte == Some(load.ttfb))
}

/// How much of the time up to a connection's first response the network took, where packets were seen on both sides of it.
fn network_time(packets: &[ObservedPacket<'_>], connection: &Handshake) -> Option<Duration> {
    if packets.iter().all(ObservedPacket::is_at_client) {
        return None;
    }
    let of_it = |packet: &&ObservedPacket<'_>| packet.ends() == Some(connection.ends);
    let packets: Vec<ObservedPacket<'_>> = packets.iter().filter(of_it).copied().collect();
    of_network(&passages(&packets), connection.responded()?)
}

fn last_line(silence: Silence) -> Option<String> {
    match silence {
        Silence::Late => None,
        Silence::Ended(line) => Some(line),
    }
}

fn now() -> Duration {
    Duration::from_nanos(sys::now().0)
}

/// About how many packets a page takes at the client, both those that it sends and those that it gets.
pub(super) fn expected_packets(cell: &Cell) -> Result<usize, LabError> {
    const SPARE: u64 = 4000;
    let bytes = page(cell)?.bytes().0;
    let packets = bytes / cell.hosts.mss() as u64 * 2 + SPARE;
    Ok(usize::try_from(packets).unwrap_or(usize::MAX))
}
