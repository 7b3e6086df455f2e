//! Chromium's debugging protocol on its pipe (`--remote-debugging-pipe`): a page is visited, and
//! its load is what comes of that.
//!
//! A [`Browser`] is given what was read and what time it is, and says what to write. Each visit has
//! a browser context of its own (`Target.createBrowserContext`), which has its own HTTP cache, TLS
//! sessions, names and connections; the browser goes on, warm.
//!
//! Times are those of the browser's own clock, in microseconds. FCP and LCP are the times at which
//! the frame with that content was on the screen, from the trace, where they are not rounded to
//! four milliseconds as scripts see them. Still they come in frames: see [`FRAME`].

mod browser;
mod codec;
mod load;
mod record;
mod screen;
#[cfg(test)]
mod tests;

use std::time::Duration;

pub use browser::{Browser, Cache, Failure, Visit};
pub use codec::{Codec, MOST_MESSAGE, TooLarge};
pub use load::{Computing, Connecting, Connection, Frame, Load, Negotiated, Request, Source};
pub(crate) use record::origin;
pub use record::{Frames, Tasks};

/// Chromium draws sixty frames a second at most. What changes in between is seen with the next
/// frame, so a paint is reported up to this much late: of two loads over the same network, one can
/// have its first paint a frame before the other, and the load event at the same time.
pub const FRAME: Duration = Duration::from_nanos(1_000_000_000 / 60);

/// Switches that a Chromium needs to be measured: no window, the pipe, and nothing that it loads on
/// its own account. Who starts it adds where its profile is, what its names resolve to and what the
/// machine needs.
pub const SWITCHES: [&str; 11] = [
    "--headless=new",
    "--remote-debugging-pipe",
    "--no-first-run",
    "--no-default-browser-check",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-default-apps",
    "--disable-extensions",
    "--disable-sync",
    // Frames of other sites stay in the page's process, so that the page's session tells of them,
    // too.
    "--disable-site-isolation-trials",
    // The same, and without pages of the browser's own, which it would load and run.
    concat!(
        "--disable-features=IsolateOrigins,site-per-process,",
        "WebUIOmniboxPopup,WebUIOmniboxAimPopup,WebUIOmniboxFullPopup"
    ),
];

/// The file `Default/Preferences` of the profile. A browser that guesses what will be asked for
/// connects before it navigates, and then tells no time of connecting.
pub const PREFERENCES: &str = r#"{"net":{"network_prediction_options":2}}"#;
