//! Loads of a page under each other: what was asked for when, what each waited for, and when the page was seen.

mod drawing;
#[cfg(test)]
pub(super) mod tests;

use std::time::Duration;

use lastbyte_page::cdp::{FRAME, Load};
use lastbyte_page::har::Titled;

pub(super) use drawing::for_page;
pub use drawing::svg;

use lastbyte_results::number::milliseconds;

/// A load that a report shows, and whose it is: an arm and a network.
#[derive(Clone, Debug)]
pub struct Loaded {
    /// The name.
    pub name: String,
    /// The load.
    pub load: Load,
}

impl Loaded {
    /// The load under its name.
    #[must_use]
    pub fn titled(&self) -> Titled<'_> {
        Titled {
            title: &self.name,
            load: &self.load,
        }
    }
}

/// A time of a load that people know, with the word for it.
pub(super) type Milestone = (&'static str, fn(&Load) -> Option<Duration>);

/// All that are told, in the order in which they usually come.
pub(super) const MILESTONES: [Milestone; 7] = [
    ("connected", |load| load.connect),
    ("handshake", |load| load.handshake),
    ("first byte", |load| Some(load.ttfb)),
    ("first paint", |load| Some(load.fcp)),
    ("largest paint", |load| load.lcp),
    ("load event", |load| Some(load.load)),
    ("Speed Index", |load| load.speed_index),
];

/// What the loads come to, each compared with the first: one sentence for each other one.
#[must_use]
pub fn story(loads: &[Titled<'_>]) -> Vec<String> {
    let Some((first, others)) = loads.split_first() else {
        return Vec::new();
    };
    let sentence = |other: &Titled<'_>| {
        let compared = MILESTONES[2..6].iter().filter_map(|(name, of)| {
            let (then, now) = of(first.load).zip(of(other.load))?;
            Some((*name, later(then, now)))
        });
        let told: Vec<String> = (compared.enumerate())
            .map(|(nth, (name, later))| match nth {
                0 => format!("the {name} comes {later}"),
                _ => format!("the {name} {later}"),
            })
            .collect();
        format!("In these loads, with {}, {}.", other.title, told.join(", "))
    };
    others.iter().map(sentence).collect()
}

/// `49.8 ms later`, `0.412 ms sooner`, `at the same time`
fn later(then: Duration, now: Duration) -> String {
    match now.checked_sub(then) {
        Some(Duration::ZERO) => "at the same time".to_owned(),
        Some(by) => format!("{} later", milliseconds(by)),
        None => format!("{} sooner", milliseconds(then.saturating_sub(now))),
    }
}

/// What the drawing shows, and how exact its times are.
pub(super) fn caption(load: &Load) -> String {
    format!(
        "Each line is a request, in the order in which the browser, {}, made them: the thin part is waiting for a connection or for its turn, the pale \
         one waiting for the first byte, the full one receiving. Above them, how much of the screen looks as in the end. Times are the browser's \
         own, since the navigation began. Paints come in frames, and are seen up to {} late.",
        load.browser,
        milliseconds(FRAME)
    )
}
