//! A progress bar with the time left, on a terminal only.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use super::tell;
use lastbyte::lab::Watcher;

/// What is worth a line where there is no bar.
const LONG: Duration = Duration::from_secs(60);

/// After that, what takes long is worth one.
const SILENT: Duration = Duration::from_secs(10);

/// A bar on standard error. It counts the time that the work is expected to take.
pub(super) struct Bar {
    bar: ProgressBar,
    /// When the work began, and how long it should take; `None` once that is told, or where a bar tells it.
    untold: Mutex<Option<(Instant, Duration)>>,
    /// Whether it can end long before.
    ends_early: AtomicBool,
}

impl Bar {
    pub(super) fn new() -> Self {
        // indicatif draws nothing where standard error is no terminal.
        let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr());
        let template = "{msg} {wide_bar} {percent:>3} %  {eta} left";
        if let Ok(style) = ProgressStyle::with_template(template) {
            bar.set_style(style);
        }
        Self {
            bar,
            untold: Mutex::new(None),
            ends_early: AtomicBool::new(false),
        }
    }

    pub(super) fn say(&self, message: String) {
        self.bar.set_message(message);
    }

    /// Has the time that is expected be the most that it can be: what is measured ends when it is known well enough.
    pub(super) fn ends_early(&self) {
        self.ends_early.store(true, Ordering::Relaxed);
    }

    pub(super) fn finish(&self) {
        self.bar.finish_and_clear();
    }

    /// Tells where no bar does.
    fn tell(&self, total: Duration) {
        let about = if self.ends_early.load(Ordering::Relaxed) {
            "at most"
        } else {
            "about"
        };
        self.warn(&format!("measuring takes {about} {}", rounded(total)));
    }

    /// As [`Bar::tell`], once the work turns out to take long.
    fn tell_late(&self) {
        let Ok(mut untold) = self.untold.lock() else {
            return;
        };
        let Some((began, total)) = *untold else {
            return;
        };
        let done = Duration::from_micros(self.bar.position()).as_secs_f64();
        let part = done / total.as_secs_f64().max(1e-6);
        if began.elapsed() < SILENT || part <= 0.0 {
            return;
        }
        *untold = None;
        let whole = began.elapsed().div_f64(part.min(1.0));
        if whole >= 2 * SILENT {
            self.tell(whole);
        }
    }
}

impl Watcher for Bar {
    fn expect(&self, total: Duration) {
        self.bar.set_length(total.as_micros() as u64);
        self.bar.reset_eta();
        self.bar.set_message("measuring");
        match (self.bar.is_hidden(), total >= LONG) {
            (true, true) => self.tell(total),
            // What computes longer than anybody expects shows only then.
            (true, false) => {
                if let Ok(mut untold) = self.untold.lock() {
                    *untold = Some((Instant::now(), total));
                }
            }
            (false, _) => {}
        }
    }

    fn advance(&self, part: Duration) {
        self.bar.inc(part.as_micros() as u64);
        self.tell_late();
    }

    fn warn(&self, line: &str) {
        self.bar.suspend(|| {
            tell(line);
        });
    }
}

/// In the two largest units of it that count: nobody knows it better beforehand.
pub(super) fn rounded(expected: Duration) -> String {
    let seconds = expected.as_secs_f64().ceil() as u64;
    match (seconds / 3600, seconds / 60 % 60, seconds % 60) {
        (0, 0, seconds) => format!("{seconds} s"),
        (0, minutes, seconds) => format!("{minutes} min {seconds} s"),
        (hours, minutes, _) => format!("{hours} h {minutes} min"),
    }
}
