//! A progress bar with the time left, on a terminal only.

use std::io::{self, Write};
use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use lastbyte::lab::Watcher;

/// What is worth a line where there is no bar.
const LONG: Duration = Duration::from_secs(60);

/// A bar on standard error. It counts the time that the work is expected to take.
pub(super) struct Bar(ProgressBar);

impl Bar {
    pub(super) fn new() -> Self {
        // indicatif draws nothing where standard error is no terminal.
        let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr());
        let template = "{msg} {wide_bar} {percent:>3} %  {eta} left";
        if let Ok(style) = ProgressStyle::with_template(template) {
            bar.set_style(style);
        }
        Self(bar)
    }

    pub(super) fn say(&self, message: String) {
        self.0.set_message(message);
    }

    pub(super) fn finish(&self) {
        self.0.finish_and_clear();
    }
}

impl Watcher for Bar {
    fn expect(&self, total: Duration) {
        self.0.set_length(total.as_micros() as u64);
        self.0.reset_eta();
        self.0.set_message("measuring");
        // Where no bar tells.
        if total >= LONG && self.0.is_hidden() {
            self.warn(&format!("measuring takes about {}", rounded(total)));
        }
    }

    fn advance(&self, part: Duration) {
        self.0.inc(part.as_micros() as u64);
    }

    fn warn(&self, line: &str) {
        self.0.suspend(|| {
            let _ = writeln!(io::stderr(), "lastbyte: {line}");
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
