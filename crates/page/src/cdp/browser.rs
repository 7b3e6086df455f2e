//! A browser at the other end of the pipe, and one visit of a page after the other.

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::{Value, json};
use thiserror::Error;

use super::codec::Codec;
use super::load::Load;
use super::record::{Document, Frames, Record, Tasks, WRONG_STATUS};

/// A Chromium, as who holds its debugging pipe sees it: what to write, and what comes of what was
/// read.
///
/// It owns no pipe and reads no clock. Whoever does writes [`Browser::outgoing`], hands what was
/// read to [`Browser::receive`] with the time on any clock that goes forward, calls
/// [`Browser::tick`] when [`Browser::wake`] is there, and [`Browser::closed`] when the pipe is;
/// until [`Browser::outcome`] is something. Then the browser takes the next visit.
#[derive(Debug, Default)]
pub struct Browser {
    codec: Codec,
    outgoing: Vec<u8>,
    last_id: u64,
    product: Option<String>,
    visit: Option<Visiting>,
    outcome: Option<Result<Box<Load>, Failure>>,
    /// Why no visit can be made any more.
    broken: Option<Failure>,
}

/// A page to visit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Visit {
    /// Where it is.
    pub url: String,
    /// What the browser has of it beforehand.
    pub cache: Cache,
    /// Whether the Speed Index is wanted.
    pub frames: Frames,
    /// Whether what the page computes is wanted.
    pub tasks: Tasks,
    /// How many times longer each task of the page's takes than on this machine, from 1 on. The
    /// browser has the thread wait for that.
    pub slowdown: u32,
    /// How long the page may take.
    pub timeout: Duration,
    /// How long nothing has to happen after the `load` event until the page counts as done: a
    /// larger picture may still be painted.
    pub quiet: Duration,
    /// How long the browser may take for an answer of its own before it counts as hung.
    pub patience: Duration,
}

/// What a browser has of a page beforehand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cache {
    /// Nothing: no file, no session, no name, no connection.
    Cold,
    /// All that a visit leaves, but for connections that end in this time.
    Warm {
        /// How long it is between the two visits.
        pause: Duration,
    },
}

/// Why there is no load.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum Failure {
    /// The pipe ended.
    #[error("the browser has ended")]
    Ended,
    /// The page's renderer ended.
    #[error("the page crashed in the browser")]
    Crashed,
    /// The browser does not answer.
    #[error("the browser hangs: no answer to {command} within {patience:?}")]
    Hung {
        /// What it was sent.
        command: String,
        /// How long it had.
        patience: Duration,
    },
    /// The browser says no.
    #[error("the browser refuses {command}: {problem}")]
    Refused {
        /// What it was sent.
        command: String,
        /// What it says.
        problem: String,
    },
    /// What it says is no message of the protocol.
    #[error("what the browser says can't be read: {problem}")]
    Unreadable {
        /// What is wrong with it.
        problem: String,
    },
    /// There is no document.
    #[error("the page can't be had: {error}")]
    NoDocument {
        /// The browser's name for it, such as `net::ERR_CERT_AUTHORITY_INVALID`.
        error: String,
    },
    /// The document's response is an error.
    #[error("the page's server answers with status {status}")]
    Status {
        /// Its status.
        status: u16,
    },
    /// No response in time.
    #[error("the page's server does not answer within {timeout:?}")]
    Silent {
        /// How long it had.
        timeout: Duration,
    },
    /// Not all of it came in time.
    #[error(
        "the page is not done within {timeout:?}: {count} of its requests are open, the first is {first}"
    )]
    Unfinished {
        /// How long it had.
        timeout: Duration,
        /// How many requests are open.
        count: usize,
        /// One of them.
        first: String,
    },
    /// It always asks for more.
    #[error("the page makes more requests than are counted")]
    Endless,
    /// It was loaded, but nothing was to be seen.
    #[error("the page was loaded and never painted")]
    NeverPainted,
    /// The browser did not tell when something happened.
    #[error("the browser told no times of the page")]
    Untimed,
}

/// A visit, and how far it is.
#[derive(Debug)]
struct Visiting {
    visit: Visit,
    step: Step,
    /// What is open, and until when: commands by number.
    pending: BTreeMap<u64, (&'static str, Duration)>,
    context: Option<String>,
    target: Option<String>,
    session: Option<String>,
    record: Record,
    /// When something last happened on the page.
    active: Duration,
    /// When the page's time is over.
    deadline: Duration,
    result: Option<Result<Box<Load>, Failure>>,
}

/// How far a visit is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    /// The browser says who it is, and makes a place for the visit.
    Preparing,
    /// A visit that leaves what the one that counts finds.
    Warming,
    /// Time passes between the two.
    Resting(Duration),
    /// The trace begins.
    Tracing,
    /// The page is loaded.
    Loading,
    /// The trace is collected.
    Collecting,
    /// The place is removed.
    Leaving,
}

/// What is traced: paints and navigation, and pictures of the screen.
const TRACED: [&str; 2] = ["rail", "blink.user_timing"];
const SCREENS: &str = "disabled-by-default-devtools.screenshot";
const TASKS: &str = "disabled-by-default-devtools.timeline";

impl Browser {
    /// One that was just started.
    #[must_use]
    pub fn new() -> Browser {
        Browser::default()
    }

    /// What to write into the pipe; empty if there is nothing.
    pub fn outgoing(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.outgoing)
    }

    /// What the browser calls itself, `Chrome/156.0.8078.79`, once it was asked.
    #[must_use]
    pub fn product(&self) -> Option<&str> {
        self.product.as_deref()
    }

    /// Whether another visit can be made.
    #[must_use]
    pub fn is_ready(&self) -> bool {
        self.visit.is_none() && self.broken.is_none()
    }

    /// Begins a visit. What an earlier one came to must have been taken; one that is not over is
    /// forgotten.
    pub fn begin(&mut self, visit: Visit, now: Duration) {
        self.outcome = None;
        if let Some(broken) = &self.broken {
            self.outcome = Some(Err(broken.clone()));
            return;
        }
        self.visit = Some(Visiting {
            visit,
            step: Step::Preparing,
            pending: BTreeMap::new(),
            context: None,
            target: None,
            session: None,
            record: Record::default(),
            active: now,
            deadline: Duration::MAX,
            result: None,
        });
        match self.product {
            None => self.send("Browser.getVersion", json!({}), now),
            Some(_) => self.send("Target.createBrowserContext", json!({}), now),
        }
    }

    /// What the visit came to, once.
    pub fn outcome(&mut self) -> Option<Result<Load, Failure>> {
        self.outcome.take().map(|outcome| outcome.map(|load| *load))
    }

    /// Whether the visit is between the two of a warm one: connections are to end now.
    #[must_use]
    pub fn is_resting(&self) -> bool {
        let step = self.visit.as_ref().map(|visiting| visiting.step);
        matches!(step, Some(Step::Resting(_)))
    }

    /// Whether the page of a visit that counts is being loaded: its `load` event was not reported
    /// yet.
    #[must_use]
    pub fn is_loading(&self) -> bool {
        let loading =
            |visiting: &Visiting| visiting.step == Step::Loading && !visiting.record.has("load");
        self.visit.as_ref().is_some_and(loading)
    }

    /// Takes what was read from the pipe.
    pub fn receive(&mut self, bytes: &[u8], now: Duration) {
        self.codec.push(bytes);
        loop {
            let message = match self.codec.pop() {
                Ok(None) => break,
                Ok(Some(message)) => message,
                Err(problem) => return self.unreadable(problem.to_string()),
            };
            match serde_json::from_slice::<Value>(&message) {
                Ok(message) if message.is_object() => self.take(&message, now),
                Ok(_) => return self.unreadable("a message is no object".to_owned()),
                Err(problem) => return self.unreadable(problem.to_string()),
            }
            if self.broken.is_some() {
                return;
            }
        }
        self.tick(now);
    }

    /// The pipe has ended.
    pub fn closed(&mut self) {
        self.break_off(Failure::Ended);
    }

    /// When [`Browser::tick`] has to be called, if nothing comes before.
    #[must_use]
    pub fn wake(&self) -> Option<Duration> {
        let visiting = self.visit.as_ref()?;
        let answers = visiting.pending.values().map(|(_, until)| *until);
        let of_step = match visiting.step {
            Step::Loading | Step::Warming => visiting.is_loaded().then(|| visiting.quiet_at()),
            Step::Resting(until) => Some(until),
            _ => None,
        };
        let page = match visiting.step {
            Step::Loading | Step::Warming => Some(visiting.deadline),
            _ => None,
        };
        answers.chain(of_step).chain(page).min()
    }

    /// Time has passed.
    pub fn tick(&mut self, now: Duration) {
        let Some(visiting) = &mut self.visit else {
            return;
        };
        let late = visiting.pending.values().find(|(_, until)| *until <= now);
        if let Some((command, _)) = late {
            let failure = Failure::Hung {
                command: (*command).to_owned(),
                patience: visiting.visit.patience,
            };
            return self.break_off(failure);
        }
        match visiting.step {
            Step::Loading | Step::Warming => {
                let quiet = visiting.is_loaded() && visiting.quiet_at() <= now;
                if let Some(failure) = visiting.failure(now, quiet) {
                    self.fail(failure, now);
                } else if quiet {
                    self.settled(now);
                }
            }
            Step::Resting(until) if until <= now => self.trace(now),
            _ => {}
        }
    }

    /// Sends a command to the browser.
    fn send(&mut self, method: &'static str, params: Value, now: Duration) {
        self.command(method, &params, None, now);
    }

    /// Sends a command to the page.
    fn tell(&mut self, method: &'static str, params: Value, now: Duration) {
        let session = self
            .visit
            .as_ref()
            .and_then(|visiting| visiting.session.clone());
        self.command(method, &params, session.as_deref(), now);
    }

    fn command(
        &mut self,
        method: &'static str,
        params: &Value,
        session: Option<&str>,
        now: Duration,
    ) {
        self.last_id += 1;
        let mut message = json!({ "id": self.last_id, "method": method, "params": params });
        if let Some(session) = session {
            message["sessionId"] = session.into();
        }
        self.outgoing.extend(message.to_string().into_bytes());
        self.outgoing.push(0);
        if let Some(visiting) = &mut self.visit {
            let until = now.saturating_add(visiting.visit.patience);
            visiting.pending.insert(self.last_id, (method, until));
        }
    }

    /// Takes a message.
    fn take(&mut self, message: &Value, now: Duration) {
        match (message["id"].as_u64(), message["method"].as_str()) {
            (Some(id), _) => self.answered(id, message, now),
            (None, Some(method)) => self.happened(method, message, now),
            (None, None) => self.unreadable("a message has neither id nor method".to_owned()),
        }
    }

    /// Takes the answer to a command. Those of an earlier visit's are passed over.
    fn answered(&mut self, id: u64, message: &Value, now: Duration) {
        let Some(visiting) = &mut self.visit else {
            return;
        };
        let Some((command, _)) = visiting.pending.remove(&id) else {
            return;
        };
        if let Some(problem) = message["error"]["message"].as_str() {
            // Somebody may have closed it already.
            if visiting.step != Step::Leaving {
                let failure = Failure::Refused {
                    command: command.to_owned(),
                    problem: problem.to_owned(),
                };
                self.fail(failure, now);
            } else {
                self.left();
            }
            return;
        }
        let result = &message["result"];
        let text = |name: &str| result[name].as_str().map(str::to_owned);
        match command {
            "Browser.getVersion" => {
                self.product = text("product");
                self.send("Target.createBrowserContext", json!({}), now);
            }
            "Target.createBrowserContext" => {
                visiting.context = text("browserContextId");
                let params = json!({
                    "url": "about:blank",
                    "browserContextId": visiting.context,
                    "width": 1366,
                    "height": 768,
                });
                self.send("Target.createTarget", params, now);
            }
            "Target.createTarget" => {
                visiting.target = text("targetId");
                let params = json!({ "targetId": visiting.target, "flatten": true });
                self.send("Target.attachToTarget", params, now);
            }
            "Target.attachToTarget" => {
                visiting.session = text("sessionId");
                let slowdown = visiting.visit.slowdown;
                self.tell("Inspector.enable", json!({}), now);
                // Nobody asks for bodies afterwards.
                let sizes = json!({ "maxTotalBufferSize": 0, "maxResourceBufferSize": 0 });
                self.tell("Network.enable", sizes, now);
                if slowdown > 1 {
                    let rate = json!({ "rate": slowdown });
                    self.tell("Emulation.setCPUThrottlingRate", rate, now);
                }
                self.tell("Page.enable", json!({}), now);
                self.tell(
                    "Page.setLifecycleEventsEnabled",
                    json!({ "enabled": true }),
                    now,
                );
            }
            "Page.setLifecycleEventsEnabled" => match visiting.visit.cache {
                Cache::Cold => self.trace(now),
                Cache::Warm { .. } => self.navigate(Step::Warming, now),
            },
            "Tracing.start" => self.navigate(Step::Loading, now),
            "Page.navigate" => self.navigated(result, now),
            "Target.disposeBrowserContext" => self.left(),
            _ => {}
        }
    }

    /// Begins the trace of the visit that counts.
    fn trace(&mut self, now: Duration) {
        let Some(visiting) = &mut self.visit else {
            return;
        };
        visiting.step = Step::Tracing;
        let mut categories = TRACED.to_vec();
        if visiting.visit.frames == Frames::All {
            categories.push(SCREENS);
        }
        if visiting.visit.tasks == Tasks::Traced {
            categories.push(TASKS);
        }
        let config = json!({ "includedCategories": categories });
        let params = json!({ "transferMode": "ReportEvents", "traceConfig": config });
        self.tell("Tracing.start", params, now);
    }

    /// Goes to the page.
    fn navigate(&mut self, step: Step, now: Duration) {
        let Some(visiting) = &mut self.visit else {
            return;
        };
        visiting.step = step;
        visiting.record = Record::default();
        visiting.active = now;
        visiting.deadline = now.saturating_add(visiting.visit.timeout);
        // The answer comes with the document's first byte: as long as the page may take.
        let url = visiting.visit.url.clone();
        self.tell("Page.navigate", json!({ "url": url }), now);
        if let Some(visiting) = &mut self.visit {
            visiting.pending.remove(&self.last_id);
            visiting
                .pending
                .insert(self.last_id, ("Page.navigate", Duration::MAX));
        }
    }

    /// The browser says what it made of a navigation.
    fn navigated(&mut self, result: &Value, now: Duration) {
        let Some(visiting) = &mut self.visit else {
            return;
        };
        if !matches!(visiting.step, Step::Loading | Step::Warming) {
            return;
        }
        // Of a wrong status the response itself, which may come after this, says which it was.
        let error = result["errorText"].as_str();
        if let Some(error) = error.filter(|error| *error != WRONG_STATUS) {
            let error = error.to_owned();
            self.fail(Failure::NoDocument { error }, now);
        } else if let (Some(frame), Some(loader)) =
            (result["frameId"].as_str(), result["loaderId"].as_str())
        {
            visiting.record.expect(frame.to_owned(), loader.to_owned());
        }
    }

    /// Takes an event.
    fn happened(&mut self, method: &str, message: &Value, now: Duration) {
        let Some(visiting) = &mut self.visit else {
            return;
        };
        let params = &message["params"];
        let is_page = message["sessionId"].as_str() == visiting.session.as_deref();
        match method {
            _ if !is_page => {}
            "Inspector.targetCrashed" => self.fail(Failure::Crashed, now),
            "Inspector.detached" if visiting.step != Step::Leaving => {
                self.fail(Failure::Crashed, now);
            }
            // It says which document is meant before anything else of that happens.
            "Page.frameStartedNavigating" => {
                let (frame, loader) = (&params["frameId"], &params["loaderId"]);
                let is_main = frame.as_str() == visiting.target.as_deref();
                if let (true, Some(frame), Some(loader)) =
                    (is_main, frame.as_str(), loader.as_str())
                {
                    visiting.record.expect(frame.to_owned(), loader.to_owned());
                }
            }
            "Tracing.tracingComplete" if visiting.step == Step::Collecting => self.collected(now),
            _ => {
                visiting.record.take(method, params);
                if method != "Tracing.dataCollected" {
                    visiting.active = now;
                }
            }
        }
    }

    /// The page is done.
    fn settled(&mut self, now: Duration) {
        let Some(visiting) = &mut self.visit else {
            return;
        };
        match (visiting.step, visiting.visit.cache) {
            (Step::Warming, Cache::Warm { pause }) => {
                visiting.step = Step::Resting(now.saturating_add(pause));
                self.tell("Page.navigate", json!({ "url": "about:blank" }), now);
                self.tick(now);
            }
            _ => {
                visiting.step = Step::Collecting;
                self.tell("Tracing.end", json!({}), now);
                // The end of the trace is no answer, but is awaited like one.
                if let Some(visiting) = &mut self.visit {
                    let until = now.saturating_add(visiting.visit.patience);
                    visiting.pending.insert(0, ("Tracing.end", until));
                }
            }
        }
    }

    /// The trace is there.
    fn collected(&mut self, now: Duration) {
        let Some(visiting) = &mut self.visit else {
            return;
        };
        if visiting.result.is_none() {
            let record = std::mem::take(&mut visiting.record);
            let product = self.product.clone().unwrap_or_default();
            let Visit { frames, tasks, .. } = visiting.visit;
            let load = record.load(product, frames, tasks);
            visiting.result = Some(load.map(Box::new).ok_or(Failure::Untimed));
        }
        self.leave(now);
    }

    /// The visit has failed, and its place is removed.
    fn fail(&mut self, failure: Failure, now: Duration) {
        let Some(visiting) = &mut self.visit else {
            return;
        };
        if visiting.result.is_some() {
            return;
        }
        visiting.result = Some(Err(failure));
        // A trace is one for the whole browser.
        if matches!(
            visiting.step,
            Step::Loading | Step::Tracing | Step::Collecting
        ) {
            self.tell("Tracing.end", json!({}), now);
        }
        self.leave(now);
    }

    fn leave(&mut self, now: Duration) {
        let Some(visiting) = &mut self.visit else {
            return;
        };
        visiting.step = Step::Leaving;
        visiting.pending.clear();
        match visiting.context.clone() {
            None => self.left(),
            Some(context) => {
                let params = json!({ "browserContextId": context });
                self.send("Target.disposeBrowserContext", params, now);
            }
        }
    }

    fn left(&mut self) {
        if let Some(visiting) = self.visit.take() {
            self.outcome = visiting.result;
        }
    }

    fn unreadable(&mut self, problem: String) {
        self.break_off(Failure::Unreadable { problem });
    }

    /// Nothing can be had of the browser any more.
    fn break_off(&mut self, failure: Failure) {
        if let Some(visiting) = self.visit.take() {
            // What the page came to is not lost where only its place could not be removed.
            let result = visiting.result.unwrap_or_else(|| Err(failure.clone()));
            self.outcome = Some(result);
        }
        self.broken.get_or_insert(failure);
    }
}

impl Visiting {
    /// Whether the page's `load` event was there, and nothing is open.
    fn is_loaded(&self) -> bool {
        self.record.has("load") && self.record.waiting().is_empty()
    }

    fn quiet_at(&self) -> Duration {
        self.active.saturating_add(self.visit.quiet)
    }

    /// Why the page can't come to a good end.
    fn failure(&self, now: Duration, quiet: bool) -> Option<Failure> {
        let document = self.record.document();
        let timeout = self.visit.timeout;
        match document {
            Document::Failed(error) => return Some(Failure::NoDocument { error }),
            Document::Answered(status) if status >= 400 => return Some(Failure::Status { status }),
            _ => {}
        }
        if self.record.too_many {
            return Some(Failure::Endless);
        }
        let is_painted = self.record.has("firstContentfulPaint");
        if quiet && !is_painted {
            return Some(Failure::NeverPainted);
        }
        if self.deadline > now || quiet {
            return None;
        }
        let waiting = self.record.waiting();
        Some(match (document, waiting.first()) {
            (Document::Nothing, _) => Failure::Silent { timeout },
            (_, None) if self.record.has("load") && !is_painted => Failure::NeverPainted,
            (_, first) => Failure::Unfinished {
                timeout,
                count: waiting.len(),
                first: first.cloned().unwrap_or_default(),
            },
        })
    }
}
