//! Threads that compute and sign handshakes, so that nothing else waits for them.

use std::collections::{HashMap, VecDeque};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread;

use tokio::sync::oneshot;

use super::source::Source;

/// As many threads as there are processors but one, and at least one, for all that whoever has it
/// does not do itself. Sources take turns: one with much to sign delays others by no more than what
/// is under way.
#[derive(Debug)]
pub(super) struct Signers {
    name: &'static str,
    processors: usize,
    priority: Priority,
    idle: Idle,
    /// How many jobs wait or are done.
    jobs: Arc<AtomicUsize>,
    queue: Arc<Queue>,
    /// Whether there are threads, once there was something to do: what a program gives up when it
    /// starts is to hold for all.
    started: OnceLock<bool>,
}

#[derive(Default)]
struct Queue {
    waiting: Mutex<Waiting>,
    changed: Condvar,
}

#[derive(Default)]
struct Waiting {
    /// Whose turn is next: all sources that have jobs, each once.
    turns: VecDeque<Source>,
    jobs: HashMap<Source, VecDeque<Box<dyn Job>>>,
    /// How many threads wait for jobs. To wake one is a system call, whether one waits or not.
    threads: usize,
    state: State,
}

#[derive(Clone, Copy, Default, PartialEq, Eq)]
enum State {
    #[default]
    Open,
    Closed,
}

/// How processors are shared with all else that runs here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Priority {
    /// As the program has it.
    Usual,
    /// Who needs a processor for a moment does not wait for it. It still gets a third of what
    /// others get, where a processor is never free: clients wait for it, too.
    Low,
}

impl Priority {
    /// Gives it to this thread.
    fn assume(self) {
        /// Each is worth a fifth of a processor's time (sched(7)).
        const LOWER: i32 = 5;
        if self == Priority::Low {
            // Where that is refused, all share alike.
            let _ = rustix::process::nice(LOWER);
        }
    }
}

/// Who does what comes while there is a processor for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Idle {
    /// Whoever has it: to hand it to a thread and back takes longer than many a signature. Once as
    /// many jobs as there are processors wait or are done, others come into the queue.
    Owner,
    /// A thread.
    Thread,
}

/// What is to be done for somebody who waits.
trait Job: Send {
    /// Whether somebody still does.
    fn is_wanted(&self) -> bool;
    fn run(self: Box<Self>);
}

impl Signers {
    pub(super) fn new(name: &'static str, priority: Priority, idle: Idle) -> Signers {
        let processors = thread::available_parallelism().map_or(1, usize::from);
        Signers::with(name, processors, priority, idle)
    }

    fn with(name: &'static str, processors: usize, priority: Priority, idle: Idle) -> Signers {
        Signers {
            name,
            processors,
            priority,
            idle,
            jobs: Arc::default(),
            queue: Arc::default(),
            started: OnceLock::new(),
        }
    }

    /// Whether there is a thread at least.
    fn start(&self) -> bool {
        let thread = |_| {
            let (queue, priority) = (Arc::clone(&self.queue), self.priority);
            let thread = thread::Builder::new().name(self.name.to_owned());
            let work = move || {
                priority.assume();
                queue.work();
            };
            // Nobody waits for their end: the process may end while one signs.
            thread.spawn(work).is_ok()
        };
        *self.started.get_or_init(|| {
            (0..self.processors.saturating_sub(1).max(1))
                .map(thread)
                .filter(|started| *started)
                .count()
                > 0
        })
    }

    /// Has `work` done with `subject` when it is the turn of `source`. Whoever drops this before
    /// gives the turn back, and the subject is dropped at once.
    ///
    /// None if the work panics, or the system gives no thread.
    pub(super) async fn run<T, R>(
        &self,
        source: Source,
        subject: T,
        work: impl FnOnce(T) -> R + Send + 'static,
    ) -> Option<R>
    where
        T: Send + 'static,
        R: Send + 'static,
    {
        if let Some(_job) = self.at_once() {
            // As where a thread does it.
            return catch_unwind(AssertUnwindSafe(|| work(subject))).ok();
        }
        if !self.start() {
            return None;
        }
        let held = Held(Arc::new(Mutex::new(Some(subject))));
        let (sender, result) = oneshot::channel();
        let task = Task {
            subject: Arc::clone(&held.0),
            work,
            sender,
            counted: Counted::new(&self.jobs),
        };
        self.queue.push(source, Box::new(task));
        result.await.ok()
    }

    /// A job that whoever has it may do.
    fn at_once(&self) -> Option<Counted> {
        if self.idle != Idle::Owner {
            return None;
        }
        let one_more = |jobs| (jobs < self.processors).then_some(jobs + 1);
        let counted = (self.jobs).fetch_update(Ordering::Relaxed, Ordering::Relaxed, one_more);
        counted.is_ok().then(|| Counted(Arc::clone(&self.jobs)))
    }

    /// How many wait.
    pub(super) fn waiting(&self) -> usize {
        let waiting = lock(&self.queue.waiting);
        waiting.jobs.values().map(VecDeque::len).sum()
    }
}

impl Drop for Signers {
    fn drop(&mut self) {
        lock(&self.queue.waiting).state = State::Closed;
        self.queue.changed.notify_all();
    }
}

/// What waits for its turn, and is dropped with whoever waits.
struct Held<T>(Arc<Mutex<Option<T>>>);

impl<T> Drop for Held<T> {
    fn drop(&mut self) {
        lock(&self.0).take();
    }
}

struct Task<T, R, W> {
    subject: Arc<Mutex<Option<T>>>,
    work: W,
    sender: oneshot::Sender<R>,
    counted: Counted,
}

/// A job that is counted, until it is dropped.
struct Counted(Arc<AtomicUsize>);

impl Counted {
    fn new(jobs: &Arc<AtomicUsize>) -> Counted {
        jobs.fetch_add(1, Ordering::Relaxed);
        Counted(Arc::clone(jobs))
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

impl<T: Send, R: Send, W: FnOnce(T) -> R + Send> Job for Task<T, R, W> {
    fn is_wanted(&self) -> bool {
        !self.sender.is_closed()
    }

    fn run(self: Box<Self>) {
        let subject = lock(&self.subject).take();
        if let Some(subject) = subject {
            let result = (self.work)(subject);
            // Before anybody goes on with the result.
            drop(self.counted);
            // Whoever has left meanwhile doesn't need it.
            let _ = self.sender.send(result);
        }
    }
}

impl Queue {
    fn push(&self, source: Source, job: Box<dyn Job>) {
        let is_awaited = {
            let mut waiting = lock(&self.waiting);
            let waiting = &mut *waiting;
            let jobs = waiting.jobs.entry(source).or_default();
            if jobs.is_empty() {
                waiting.turns.push_back(source);
            }
            jobs.push_back(job);
            waiting.threads > 0
        };
        // Whoever is woken would wait for the lock.
        if is_awaited {
            self.changed.notify_one();
        }
    }

    /// Does jobs until the queue is closed.
    fn work(&self) {
        let mut waiting = lock(&self.waiting);
        while waiting.state == State::Open {
            match waiting.next() {
                Some(job) => {
                    drop(waiting);
                    // A job that panics ends itself and nothing else.
                    let _ = catch_unwind(AssertUnwindSafe(|| job.run()));
                    waiting = lock(&self.waiting);
                }
                None => {
                    waiting.threads += 1;
                    let woken = self.changed.wait(waiting);
                    waiting = woken.unwrap_or_else(PoisonError::into_inner);
                    waiting.threads -= 1;
                }
            }
        }
    }
}

impl Waiting {
    /// The next job that is still wanted. Those that are not are no turn.
    fn next(&mut self) -> Option<Box<dyn Job>> {
        while let Some(source) = self.turns.pop_front() {
            let jobs = self.jobs.entry(source).or_default();
            let job = std::iter::from_fn(|| jobs.pop_front()).find(|job| job.is_wanted());
            if jobs.is_empty() {
                drop(self.jobs.remove(&source));
            } else {
                self.turns.push_back(source);
            }
            if job.is_some() {
                return job;
            }
        }
        None
    }
}

impl std::fmt::Debug for Queue {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Queue").finish_non_exhaustive()
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::sync::mpsc::{Sender, channel};
    use std::sync::{Arc, Mutex};
    use std::thread;

    use super::{Idle, Priority, Signers, Source};

    /// One thread, which is kept by a job until the second sender is dropped.
    fn busy(runtime: &tokio::runtime::Runtime) -> (Arc<Signers>, Sender<()>) {
        let signers = Arc::new(Signers::with("test", 1, Priority::Usual, Idle::Thread));
        let (started, is_started) = channel();
        let (release, released) = channel::<()>();
        let kept = Arc::clone(&signers);
        runtime.spawn(async move {
            let work = move |()| {
                started.send(()).unwrap();
                let _ = released.recv();
            };
            kept.run(source(9), (), work).await
        });
        while is_started.try_recv().is_err() {
            runtime.block_on(tokio::task::yield_now());
        }
        (signers, release)
    }

    fn source(number: u8) -> Source {
        Source::from(std::net::IpAddr::from([192, 0, 2, number]))
    }

    fn runtime() -> tokio::runtime::Runtime {
        tokio::runtime::Builder::new_current_thread()
            .build()
            .unwrap()
    }

    #[test]
    fn sources_take_turns() {
        let runtime = runtime();
        let (signers, release) = busy(&runtime);
        runtime.block_on(async {
            let done = Arc::new(Mutex::new(Vec::new()));
            let mut jobs = tokio::task::JoinSet::new();
            for number in [1, 1, 1, 1, 2, 3, 2] {
                let signers = Arc::clone(&signers);
                let done = Arc::clone(&done);
                jobs.spawn(async move {
                    let work = move |()| done.lock().unwrap().push(number);
                    signers.run(source(number), (), work).await.unwrap();
                });
            }
            while signers.waiting() < 7 {
                tokio::task::yield_now().await;
            }
            drop(release);
            jobs.join_all().await;
            assert_eq!(*done.lock().unwrap(), [1, 2, 3, 1, 2, 1, 1]);
        });
    }

    #[test]
    fn who_leaves_gives_the_turn_back_and_drops_what_waited() {
        let runtime = runtime();
        let (signers, release) = busy(&runtime);
        runtime.block_on(async {
            let subject = Arc::new(());
            let left = tokio::spawn({
                let (signers, subject) = (Arc::clone(&signers), Arc::clone(&subject));
                async move { signers.run(source(1), subject, drop).await }
            });
            while signers.waiting() == 0 {
                tokio::task::yield_now().await;
            }
            left.abort();
            let _ = left.await;
            assert_eq!(
                Arc::strong_count(&subject),
                1,
                "it is dropped before its turn"
            );
            drop(release);
            assert_eq!(signers.run(source(1), 7, |number| number).await, Some(7));
        });
    }

    #[test]
    fn slow_ones_have_a_priority_of_their_own() {
        let of = |priority| {
            let signers = Signers::with("test", 1, priority, Idle::Thread);
            let own = |()| rustix::process::getpriority_process(None).unwrap();
            runtime().block_on(signers.run(source(1), (), own)).unwrap()
        };
        let usual = rustix::process::getpriority_process(None).unwrap();
        assert_eq!(of(Priority::Usual), usual);
        assert_eq!(of(Priority::Low), (usual + 5).min(19));
    }

    #[test]
    fn a_job_that_panics_ends_alone() {
        for idle in [Idle::Thread, Idle::Owner] {
            let signers = Signers::with("test", 1, Priority::Usual, idle);
            runtime().block_on(async {
                let panics = |()| std::panic::resume_unwind(Box::new("on purpose"));
                assert_eq!(signers.run::<(), ()>(source(1), (), panics).await, None);
                assert_eq!(signers.run(source(1), 7, |number| number).await, Some(7));
            });
        }
    }

    #[test]
    fn jobs_are_done_by_who_has_them_while_processors_are_free() {
        for processors in [1, 2, 3] {
            let signers = Arc::new(Signers::with(
                "test",
                processors,
                Priority::Usual,
                Idle::Owner,
            ));
            for _ in 0..2 {
                let mut owners = are_owners(&signers, processors + 1);
                assert_eq!(owners.pop(), Some(false), "of {processors}");
                assert!(owners.into_iter().all(|is_owner| is_owner));
            }
        }
    }

    /// Whether jobs are done by whoever has them, each of which comes while those before are under
    /// way.
    fn are_owners(signers: &Arc<Signers>, jobs: usize) -> Vec<bool> {
        let own = thread::current().id();
        let shared = Arc::clone(signers);
        let work = move |()| {
            let is_owner = thread::current().id() == own;
            let next = move || are_owners(&shared, jobs - 1);
            let mut owners = vec![is_owner];
            if jobs > 1 {
                owners.extend(thread::spawn(next).join().unwrap());
            }
            owners
        };
        runtime()
            .block_on(signers.run(source(1), (), work))
            .unwrap()
    }
}
