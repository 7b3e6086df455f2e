//! Other people's programs: where they are and what they can do, and servers of theirs that answer
//! transfers and pages.

mod computing;
mod error;
mod find;
mod lookup;
mod object;
mod origin;
mod quic;
mod servers;

pub(super) use self::computing::{Computing, Timing};
pub use self::error::PageError;
pub(super) use self::find::{BrowserPrograms, Finder, Programs};
pub(super) use self::object::ForeignServer;
pub(super) use self::origin::{FIRST, Origin, origins, page, valid_from};
pub(super) use self::servers::{IDLE, PORT, Serving, framing};
