//! A server as a process: signals, the service manager, and the process that comes after it.

use std::env;
use std::io;
use std::net;
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::process::{self, Stdio};
use std::sync::Arc;
use std::time::Duration;

use nix::errno::Errno;
use nix::sys::signal::{self, SigSet};
use sd_notify::NotifyState;
use tokio::net::TcpListener;
use tokio::process::Command;
use tokio::signal::unix::{Signal, SignalKind, signal as answer};
use tokio::sync::mpsc::{self, UnboundedSender};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use tokio::time::{interval, sleep};

use super::listen::{HANDED_OVER, handed_over_by};
use super::{Order, Server};

/// What the next process may take until it serves.
const PATIENCE: Duration = Duration::from_secs(60);

/// What it sends then. Who does not wait for it is not disturbed.
const READY: signal::Signal = signal::SIGURG;

/// Signals that an operator may send before they can be answered: they wait, instead of ending the
/// process. Call it before there are threads; [`operate`] takes them.
///
/// # Errors
///
/// If the system refuses.
pub fn hold_signals() -> Result<(), Errno> {
    early().thread_block()
}

fn early() -> SigSet {
    SigSet::from_iter([signal::SIGHUP, signal::SIGUSR1, signal::SIGUSR2])
}

/// Serves until SIGTERM or SIGINT, or until another process has taken over.
///
/// SIGHUP loads the chains again, SIGUSR1 forgets those that were sent before besides, SIGUSR2
/// starts this program anew and gives it the socket. A second SIGTERM does not wait for
/// connections. The service manager is notified of all of it.
///
/// # Errors
///
/// If signals or the socket can't be had.
pub async fn operate<S>(server: Arc<Server>, socket: net::TcpListener, say: S) -> io::Result<()>
where
    S: Fn(&str) + Clone + Send + Sync + 'static,
{
    socket.set_nonblocking(true)?;
    let listener = TcpListener::from_std(socket.try_clone()?)?;
    let address = socket.local_addr()?;
    let drain = server.config.limits.drain;
    let format = server.config.log_format;
    // Another file may have this name by the time that it is started anew.
    let program = env::current_exe()?;
    let mut signals = Signals::new()?;
    early().thread_unblock()?;
    let (orders, received) = mpsc::unbounded_channel();
    let mut running = tokio::spawn(server.run(listener, received, say.clone()));
    let say = move |message: &str| say(&format.line(message));
    watch_over();
    say(&format!("serving on {address}"));
    tell(&[NotifyState::Ready]);
    if let Some(before) = handed_over_by() {
        // It goes on if it does not hear of this.
        let _ = signal::kill(before, READY);
    }
    // None once it is another's, or nobody's.
    let mut socket = Some(socket);
    let mut next: Option<JoinHandle<io::Result<u32>>> = None;
    loop {
        let request = tokio::select! {
            ended = &mut running => return ended.map_err(io::Error::other),
            started = started(&mut next), if next.is_some() => {
                next = None;
                match started {
                    Ok(process) => {
                        say(&format!("process {process} goes on, and this one ends"));
                        tell(&[NotifyState::MainPid(process)]);
                        socket = None;
                        order(&orders, Order::Stop);
                    }
                    Err(error) => say(&format!(
                        "no other process has taken over, and this one goes on: {error}"
                    )),
                }
                continue;
            }
            request = signals.next() => request,
        };
        match request {
            Request::Reload => ask(&orders, Order::Reload),
            Request::Forget => ask(&orders, Order::Forget),
            Request::HandOver => match &socket {
                Some(socket) if next.is_none() => {
                    let (program, socket) = (program.clone(), socket.try_clone());
                    next = Some(tokio::spawn(async { hand_over(program, socket?).await }));
                }
                _ => {}
            },
            Request::Stop if socket.take().is_some() => {
                let drain = u32::try_from(drain.as_micros()).unwrap_or(u32::MAX);
                tell(&[NotifyState::Stopping, NotifyState::ExtendTimeoutUsec(drain)]);
                order(&orders, Order::Stop);
            }
            Request::Stop => order(&orders, Order::Abandon),
        }
    }
}

/// What signals ask for.
#[derive(Clone, Copy, Debug)]
enum Request {
    Reload,
    Forget,
    HandOver,
    Stop,
}

struct Signals {
    hangup: Signal,
    user1: Signal,
    user2: Signal,
    terminate: Signal,
    interrupt: Signal,
}

impl Signals {
    fn new() -> io::Result<Signals> {
        Ok(Signals {
            hangup: answer(SignalKind::hangup())?,
            user1: answer(SignalKind::user_defined1())?,
            user2: answer(SignalKind::user_defined2())?,
            terminate: answer(SignalKind::terminate())?,
            interrupt: answer(SignalKind::interrupt())?,
        })
    }

    async fn next(&mut self) -> Request {
        tokio::select! {
            _ = self.hangup.recv() => Request::Reload,
            _ = self.user1.recv() => Request::Forget,
            _ = self.user2.recv() => Request::HandOver,
            _ = self.terminate.recv() => Request::Stop,
            _ = self.interrupt.recv() => Request::Stop,
        }
    }
}

/// Has the server do what takes a while, and the service manager know how long.
fn ask(orders: &UnboundedSender<Order>, what: impl FnOnce(oneshot::Sender<()>) -> Order) {
    let (done, is_done) = oneshot::channel();
    if let Ok(now) = NotifyState::monotonic_usec_now() {
        tell(&[NotifyState::Reloading, now]);
    }
    order(orders, what(done));
    tokio::spawn(async move {
        // It is dropped.
        let _ = is_done.await;
        tell(&[NotifyState::Ready]);
    });
}

fn order(orders: &UnboundedSender<Order>, what: Order) {
    // A server that has ended needs no orders.
    let _ = orders.send(what);
}

/// Tells the service manager, if there is one.
fn tell(state: &[NotifyState<'_>]) {
    // It goes on without.
    let _ = sd_notify::notify(state);
}

/// Says now and then that this process lives, if the service manager wants to hear it.
fn watch_over() {
    let Some(most) = sd_notify::watchdog_enabled().filter(|most| !most.is_zero()) else {
        return;
    };
    tokio::spawn(async move {
        let mut ticks = interval(most / 2);
        loop {
            ticks.tick().await;
            tell(&[NotifyState::Watchdog]);
        }
    });
}

async fn started(next: &mut Option<JoinHandle<io::Result<u32>>>) -> io::Result<u32> {
    match next {
        Some(next) => next.await.map_err(io::Error::other)?,
        None => std::future::pending().await,
    }
}

/// Starts this program anew, as it was started, with the socket in place of its standard input. It
/// reads whatever files are there now, itself among them. Returns its number once it serves.
async fn hand_over(program: PathBuf, socket: net::TcpListener) -> io::Result<u32> {
    let mut ready = answer(SignalKind::from_raw(READY as i32))?;
    let mut command = Command::new(program);
    command
        .args(env::args_os().skip(1))
        .stdin(Stdio::from(OwnedFd::from(socket)))
        // As systemd tells it, but for whose process that is: it is not known yet.
        .env("LISTEN_FDS", "1")
        .env("LISTEN_FDS_FIRST_FD", "0")
        .env(HANDED_OVER, process::id().to_string())
        .env_remove("LISTEN_PID")
        .env_remove("LISTEN_FDNAMES")
        .env_remove("WATCHDOG_PID");
    let mut child = command.spawn()?;
    let next = child.id();
    tokio::select! {
        ended = child.wait() => Err(io::Error::other(format!("it ended with {}", ended?))),
        _ = ready.recv() => next.ok_or_else(|| io::Error::other("it has ended")),
        () = sleep(PATIENCE) => {
            child.kill().await?;
            let most = PATIENCE.as_secs();
            Err(io::Error::other(format!("it did not serve within {most} s")))
        }
    }
}
