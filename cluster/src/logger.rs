//! What scheduler and executors say of themselves, on standard error.

use log::{LevelFilter, Log, Metadata, Record};

struct StandardError;

/// From now on, what Ballista has to say is said.
pub(crate) fn begin() {
    // It fails only where there is one already.
    if log::set_logger(&StandardError).is_ok() {
        log::set_max_level(LevelFilter::Info);
    }
}

impl Log for StandardError {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.target().starts_with("ballista")
    }

    fn log(&self, record: &Record<'_>) {
        if self.enabled(record.metadata()) {
            eprintln!("{}: {}", record.level(), record.args());
        }
    }

    fn flush(&self) {}
}
