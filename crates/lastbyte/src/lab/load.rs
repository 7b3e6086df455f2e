//! Handshakes that come by a schedule to real stacks on real cores, in memory: what a busy server makes them wait.

use std::collections::VecDeque;
use std::num::NonZero;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Condvar, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use lastbyte_link::Side;
use lastbyte_tls::{Connection, Progress, TlsError};
use thiserror::Error;

use super::PreparedArm;
use super::calibration::{Calibration, CalibrationError, Effort};
use super::cores::{available_cpus, go_first, spin_on, stay_on};
use super::lock::lock;
use super::sys::thread_cpu_time;
use crate::explain::load::{Computing, Served};

/// What was served by real cores.
#[derive(Clone, Debug)]
pub struct Live {
    /// How each handshake was served, in the order of arrivals.
    pub served: Vec<Served>,
    /// The CPU time that each took.
    pub cpu: Vec<Computing>,
    /// How long each took by the clock, with what else ran on its cores.
    pub clock: Vec<Computing>,
}

impl Live {
    /// Which share of the time that handshakes were on a core something else ran there: another program, or another machine
    /// on the same processor.
    #[must_use]
    pub fn taken(&self) -> f64 {
        let sum = |all: &[Computing]| all.iter().map(Computing::server).sum::<Duration>();
        let clock = sum(&self.clock).as_secs_f64().max(f64::MIN_POSITIVE);
        (1.0 - sum(&self.cpu).as_secs_f64() / clock).max(0.0)
    }

    /// How long a core that waits takes to begin with a Finished, where no handshake waits for another.
    #[must_use]
    pub fn wakes(&self) -> Duration {
        median(self.served.iter().map(|served| served.waiting))
    }

    /// What handshakes take of their own: the CPU time of each, and beside it what the clock has more in the middle of all. Leaves
    /// out those that took ten times as long as the one in the middle: that is the machine's, as ML-DSA takes so long for one of 10^5.
    #[must_use]
    pub fn own(&self) -> [Vec<Computing>; 2] {
        const DISTURBED: u32 = 10;
        let more = |of: fn(&Computing) -> Duration| {
            let both = self.cpu.iter().zip(&self.clock);
            median(both.map(|(cpu, clock)| of(clock).saturating_sub(of(cpu))))
        };
        let (answer, finish) = (more(|one| one.answer), more(|one| one.finish));
        let most = DISTURBED * median(self.cpu.iter().map(Computing::server));
        let cpu: Vec<_> = (self.cpu.iter())
            .filter(|one| one.server() <= most)
            .copied()
            .collect();
        let clock = cpu.iter().map(|cpu| Computing {
            answer: cpu.answer + answer,
            finish: cpu.finish + finish,
            ..*cpu
        });
        let clock = clock.collect();
        [cpu, clock]
    }
}

fn median(times: impl Iterator<Item = Duration>) -> Duration {
    let mut times: Vec<_> = times.collect();
    times.sort_unstable();
    times.get(times.len() / 2).copied().unwrap_or_default()
}

/// Nothing could be served.
#[derive(Debug, Error)]
pub enum LiveLoadError {
    /// There is none left for the clients.
    #[error(
        "this machine has {} for a server's {wanted} and at least one of the clients': take fewer by --cores, or \
         leave --live out",
        lastbyte_link::counted(*there, "core")
    )]
    Cores {
        /// For the server.
        wanted: u32,
        /// That this process may use.
        there: usize,
    },
    /// A handshake failed.
    #[error("a handshake failed: {0}")]
    Tls(#[from] TlsError),
    /// Nothing could be measured.
    #[error(transparent)]
    Calibration(#[from] CalibrationError),
    /// A thread ended too early.
    #[error("{0} ended unexpectedly: this is a bug in Lastbyte, please report it")]
    Crashed(&'static str),
}

/// How long the first handshake comes after all is ready.
const BEFORE: Duration = Duration::from_millis(20);
/// Who waits for something near spins, as a sleep ends late. Not for long: Linux takes a core from real-time threads for
/// 50 ms of each second that they would have all of.
const NEAR: Duration = Duration::from_micros(50);
/// A server has its cores for itself, and what else runs on this machine goes behind it.
const PRIORITY: i32 = 10;
/// How often who waits looks whether it is to stop.
const LOOK: Duration = Duration::from_millis(50);

/// What handshakes of `arm` compute at a server of one core that has room, so that each is alone: with its caches as other
/// work leaves them, which one handshake after the other on one thread does not have. So many at most, in about so much time;
/// `None` where that was interrupted.
///
/// # Errors
///
/// [`LiveLoadError`].
pub fn alone(
    arm: &PreparedArm,
    most: usize,
    within: Duration,
    interrupt: &AtomicBool,
) -> Result<Option<Live>, LiveLoadError> {
    /// To know about how long one takes.
    const FIRST: u32 = 20;
    /// From one to the next, in what both ends compute for one.
    const APART: f64 = 1.5;

    let first = Calibration::of_each(arm, Effort::UpTo(FIRST))?;
    let all: Duration = first.iter().map(|one| one.server() + one.client).sum();
    let apart = all.div_f64(first.len().max(1) as f64).mul_f64(APART);
    let room = (within.as_secs_f64() / apart.as_secs_f64().max(f64::MIN_POSITIVE)) as usize;
    let schedule: Vec<_> = (0..most.min(room).max(1))
        .map(|index| (apart.mul_f64(index as f64), arm))
        .collect();
    serve(&schedule, NonZero::<u32>::MIN, interrupt)
}

/// Has real stacks serve handshakes by a schedule, in ascending order, each of the arm beside it: on so many cores, in the
/// order in which they are ready, and clients on all others that this process may use. Keys and ClientHellos are made
/// before. `None` where it was interrupted.
///
/// # Errors
///
/// [`LiveLoadError`].
pub fn serve(
    schedule: &[(Duration, &PreparedArm)],
    cores: NonZero<u32>,
    interrupt: &AtomicBool,
) -> Result<Option<Live>, LiveLoadError> {
    let cpus = available_cpus();
    let wanted = usize::try_from(cores.get()).unwrap_or(usize::MAX);
    let (Some(of_server), Some(of_clients @ [_, ..])) = (cpus.get(..wanted), cpus.get(wanted..))
    else {
        return Err(LiveLoadError::Cores {
            wanted: cores.get(),
            there: cpus.len(),
        });
    };
    let Some(hellos) = hellos(schedule, cpus.len(), interrupt)? else {
        return Ok(None);
    };
    let server = Server {
        schedule,
        begins: Instant::now() + BEFORE,
        state: Mutex::new(State {
            hellos: hellos.into(),
            next: 0,
            again: VecDeque::new(),
            answered: VecDeque::new(),
            done: Vec::with_capacity(schedule.len()),
            served: vec![Served::default(); schedule.len()],
            cpu: vec![Computing::default(); schedule.len()],
            clock: vec![Computing::default(); schedule.len()],
            left: schedule.len(),
            failed: None,
        }),
        for_cores: Condvar::new(),
        for_clients: Condvar::new(),
        interrupt,
    };
    let over = AtomicBool::new(false);
    thread::scope(|scope| {
        let over = &over;
        for cpu in cpus.iter().copied() {
            scope.spawn(move || spin_on(cpu, || !over.load(Ordering::Relaxed)));
        }
        let cores = of_server.iter().map(|cpu| (cpu, Side::Server));
        let clients = of_clients.iter().map(|cpu| (cpu, Side::Client));
        let server = &server;
        let threads = cores.chain(clients).map(|(cpu, side)| {
            scope.spawn(move || {
                let _ends = EndsAll(server);
                stay_on(*cpu);
                go_first(PRIORITY);
                match side {
                    Side::Server => server.serve(),
                    Side::Client => server.finish(),
                }
            })
        });
        for thread in threads.collect::<Vec<_>>() {
            // That it crashed is in the state.
            let _ = thread.join();
        }
        over.store(true, Ordering::Relaxed);
    });
    let state = server.state.into_inner();
    let state = state.unwrap_or_else(PoisonError::into_inner);
    match state.failed {
        Some(failed) => Err(failed),
        None if state.left == 0 => Ok(Some(Live {
            served: state.served,
            cpu: state.cpu,
            clock: state.clock,
        })),
        None => Ok(None),
    }
}

/// A client, and what it has sent.
type Hello = (Box<dyn Connection>, Vec<u8>);

/// Clients that have sent their ClientHello, made on so many threads. `None` where that was interrupted.
fn hellos(
    schedule: &[(Duration, &PreparedArm)],
    threads: usize,
    interrupt: &AtomicBool,
) -> Result<Option<Vec<Hello>>, LiveLoadError> {
    let make = |arm: &PreparedArm| {
        let mut client = arm.client()?;
        client.advance()?;
        let mut hello = Vec::new();
        client.transmit(&mut hello);
        Ok::<_, TlsError>((client, hello))
    };
    let part = |part: &[(Duration, &PreparedArm)]| {
        let mut made = Vec::with_capacity(part.len());
        for (_, arm) in part {
            if interrupt.load(Ordering::Relaxed) {
                return Ok(None);
            }
            made.push(make(arm)?);
        }
        Ok::<_, TlsError>(Some(made))
    };
    let parts = schedule.len().div_ceil(threads.max(1)).max(1);
    thread::scope(|scope| {
        let threads = schedule.chunks(parts);
        let threads: Vec<_> = threads.map(|of| scope.spawn(move || part(of))).collect();
        let mut all = Vec::with_capacity(schedule.len());
        for thread in threads {
            let made = thread.join();
            match made.map_err(|_| LiveLoadError::Crashed("a client"))?? {
                Some(made) => all.extend(made),
                None => return Ok(None),
            }
        }
        Ok(Some(all))
    })
}

/// Has all threads end when one does by a bug.
struct EndsAll<'a>(&'a Server<'a>);

impl Drop for EndsAll<'_> {
    fn drop(&mut self) {
        if thread::panicking() {
            self.0.fail(LiveLoadError::Crashed("a thread"));
        }
    }
}

/// A server, its clients, and what goes between them.
struct Server<'a> {
    schedule: &'a [(Duration, &'a PreparedArm)],
    begins: Instant,
    state: Mutex<State>,
    for_cores: Condvar,
    for_clients: Condvar,
    interrupt: &'a AtomicBool,
}

struct State {
    /// That have not been answered yet, from the one that comes `next`.
    hellos: VecDeque<Hello>,
    next: usize,
    /// Handshakes that came back with what their client sent then, in the order in which they did.
    again: VecDeque<Visit>,
    /// Those that clients have to go on with.
    answered: VecDeque<Answered>,
    /// Clients of handshakes that are done.
    done: Vec<Box<dyn Connection>>,
    served: Vec<Served>,
    cpu: Vec<Computing>,
    clock: Vec<Computing>,
    left: usize,
    failed: Option<LiveLoadError>,
}

impl State {
    fn is_over(&self) -> bool {
        self.left == 0 || self.failed.is_some()
    }

    /// What a handshake computed, by each clock.
    fn add(&mut self, index: usize, add: impl Fn(&mut Computing, Clock)) {
        for (all, clock) in [(&mut self.cpu, Clock::Cpu), (&mut self.clock, Clock::Wall)] {
            if let Some(computing) = all.get_mut(index) {
                add(computing, clock);
            }
        }
    }
}

/// What tells the time.
#[derive(Clone, Copy)]
enum Clock {
    /// Goes on while the thread runs.
    Cpu,
    Wall,
}

/// What comes to the server.
struct Visit {
    index: usize,
    ready: Instant,
    received: Vec<u8>,
    client: Box<dyn Connection>,
    /// None has been made for a ClientHello yet.
    server: Option<Box<dyn Connection>>,
}

/// What a client has to go on with.
struct Answered {
    index: usize,
    since: Instant,
    received: Vec<u8>,
    client: Box<dyn Connection>,
    server: Box<dyn Connection>,
}

impl Server<'_> {
    /// Serves until nothing is left, on the core of the calling thread.
    fn serve(&self) {
        while let Some(visit) = self.next_visit() {
            if let Err(error) = self.visited(visit) {
                self.fail(error.into());
            }
        }
    }

    /// Whoever has been ready longest. Waits for one; `None` when nobody comes any more.
    fn next_visit(&self) -> Option<Visit> {
        loop {
            let mut state = lock(&self.state);
            if state.is_over() || self.interrupt.load(Ordering::Relaxed) {
                return None;
            }
            let now = Instant::now();
            let arrives = self
                .schedule
                .get(state.next)
                .and_then(|(at, _)| self.begins.checked_add(*at));
            let came_back = state.again.front().map(|visit| visit.ready);
            match (arrives, came_back) {
                (arrives, Some(ready)) if arrives.is_none_or(|arrives| ready <= arrives) => {
                    return state.again.pop_front();
                }
                (Some(arrives), _) if arrives <= now => {
                    let (client, received) = state.hellos.pop_front()?;
                    let index = state.next;
                    state.next += 1;
                    return Some(Visit {
                        index,
                        ready: arrives,
                        received,
                        client,
                        server: None,
                    });
                }
                (arrives, _) => {
                    let wait = arrives.map_or(LOOK, |arrives| arrives - now).min(LOOK);
                    match wait.checked_sub(NEAR) {
                        Some(wait) => drop(self.for_cores.wait_timeout(state, wait)),
                        None => {
                            drop(state);
                            std::hint::spin_loop();
                        }
                    }
                }
            }
        }
    }

    fn visited(&self, visit: Visit) -> Result<(), TlsError> {
        let Some((_, arm)) = self.schedule.get(visit.index) else {
            return Ok(());
        };
        let begun = Instant::now();
        let cpu = thread_cpu_time();
        let is_first = visit.server.is_none();
        let mut server = match visit.server {
            Some(server) => server,
            None => arm.stack.server()?,
        };
        server.receive(&visit.received);
        let progress = server.advance()?;
        let mut sent = Vec::new();
        server.transmit(&mut sent);
        // What is left of one that is done has to be freed, which is a server's work too.
        let server = (progress != Progress::Established).then_some(server);
        let cpu = thread_cpu_time().saturating_sub(cpu);
        let now = Instant::now();

        let mut state = lock(&self.state);
        if let Some(served) = state.served.get_mut(visit.index) {
            served.waiting += begun.saturating_duration_since(visit.ready);
            served.computing += now - begun;
            served.done = now.saturating_duration_since(self.begins);
        }
        state.add(visit.index, |computing, clock| {
            let part = if is_first {
                &mut computing.answer
            } else {
                &mut computing.finish
            };
            *part += match clock {
                Clock::Cpu => cpu,
                Clock::Wall => now - begun,
            };
        });
        let Some(server) = server else {
            // No server has a client's to free.
            state.done.push(visit.client);
            state.left -= 1;
            if state.left == 0 {
                self.for_cores.notify_all();
                self.for_clients.notify_all();
            }
            drop(state);
            return Ok(());
        };
        state.answered.push_back(Answered {
            index: visit.index,
            since: now,
            received: sent,
            client: visit.client,
            server,
        });
        drop(state);
        self.for_clients.notify_one();
        Ok(())
    }

    /// Has clients go on until nothing is left.
    fn finish(&self) {
        loop {
            let mut state = lock(&self.state);
            if state.is_over() || self.interrupt.load(Ordering::Relaxed) {
                return;
            }
            let Some(answered) = state.answered.pop_front() else {
                drop(self.for_clients.wait_timeout(state, LOOK));
                continue;
            };
            drop(state);
            if let Err(error) = self.finished(answered) {
                self.fail(error.into());
            }
        }
    }

    fn finished(&self, answered: Answered) -> Result<(), TlsError> {
        let mut client = answered.client;
        client.receive(&answered.received);
        client.advance()?;
        let mut received = Vec::new();
        client.transmit(&mut received);
        if received.is_empty() {
            return Err(TlsError::Protocol {
                reason: "both sides wait for the other".to_owned(),
            });
        }
        let mut state = lock(&self.state);
        // Within the lock, so that they come in order.
        let ready = Instant::now();
        state.add(answered.index, |computing, _| {
            computing.client += ready - answered.since
        });
        state.again.push_back(Visit {
            index: answered.index,
            ready,
            received,
            client,
            server: Some(answered.server),
        });
        drop(state);
        self.for_cores.notify_one();
        Ok(())
    }

    /// Ends all of it.
    fn fail(&self, error: LiveLoadError) {
        lock(&self.state).failed.get_or_insert(error);
        self.for_cores.notify_all();
        self.for_clients.notify_all();
    }
}

#[cfg(test)]
mod tests;
