//! Page loads, by a browser in the client's namespace.

mod http;
mod meter;
mod process;
mod reader;
mod turns;
mod wire;

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use lastbyte_link::Time;
use lastbyte_page::Site;
use lastbyte_page::cdp::{self, Failure, Frames, Load, Tasks, Visit};
use lastbyte_tls::KeyLog;

use self::meter::Meter;
use self::process::{Browser, Silence};
pub(super) use self::reader::Reader;
pub(super) use self::wire::ObservedPacket;
use super::process::Process;
use super::programs::{
    self, BrowserPrograms, Computing, IDLE, Origin, PageError, Programs, Serving, Timing,
};
use super::surroundings::Sides;
use super::{LabError, sys};
use crate::study::{Arm, Cache, Cell};

/// Between the two visits of a warm load: servers have closed idle connections by then.
const PAUSE: Duration = IDLE.saturating_add(Duration::from_secs(2));
/// How long nothing happens after the load event until a page is done.
const QUIET: Duration = Duration::from_millis(500);
/// How long the browser may take for an answer of its own.
const PATIENCE: Duration = Duration::from_secs(60);
/// After how many reads of what a browser says a load is one that takes long: a usual page has
/// fewer.
const READS: u32 = 4000;

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
    /// Starts the server, and then the browser. Their files are in `folder`. The calling thread is
    /// in the client's namespace then.
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
        let page = programs::page(cell)?;
        let none = || PageError::NoBrowser(PathBuf::new());
        let browser = programs.browser.as_ref().ok_or_else(none)?;
        let name = |place: u8| {
            let origin = origins.get(usize::from(place));
            origin.map_or_else(String::new, |origin| origin.name.clone())
        };
        let site = Site::framed(&page, programs::framing(arm.server), name);
        sides.enter_server()?;
        let serving = Serving {
            server: arm.server,
            transport: arm.transport,
            program: programs.server.as_deref().ok_or(PageError::OURS)?,
            group: arm.group,
            origins,
            idle: IDLE,
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
            let browser = Browser::start(
                self.programs,
                self.origins,
                self.arm.transport,
                self.folder,
                self.computing,
            )?;
            self.browser = Some(browser);
            self.protocol = cdp::Browser::new();
            self.keys_read = 0;
        }
        Ok(())
    }

    /// Loads the page. `begins` is called just before the visit that counts, `goes_on` now and then
    /// in one that takes long.
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

fn last_line(silence: Silence) -> Option<String> {
    match silence {
        Silence::Late => None,
        Silence::Ended(line) => Some(line),
    }
}

fn now() -> Duration {
    Duration::from_nanos(sys::now().0)
}

/// About how many packets a page takes at the client, both those that it sends and those that it
/// gets.
pub(super) fn expected_packets(cell: &Cell) -> Result<usize, LabError> {
    const SPARE: u64 = 4000;
    let bytes = programs::page(cell)?.bytes().0;
    let packets = bytes / cell.hosts.mss() as u64 * 2 + SPARE;
    Ok(usize::try_from(packets).unwrap_or(usize::MAX))
}
