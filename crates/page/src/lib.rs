//! Pages that a real browser loads, and what it tells of their loads.
//!
//! A [`Page`] is what there is to load: resources, their kinds, sizes and origins, and which is found in which. It comes from a
//! [`Model`] or from a [HAR](har). A [`Site`] is the same as files that servers can serve: bodies are made up, have exactly the size
//! that the page says, and a browser finds in each what it should.
//!
//! Nothing here owns a socket, reads a clock or starts a process.

pub mod cdp;
pub mod har;
mod model;
mod page;
mod site;
#[cfg(test)]
mod tests;

pub use model::{Model, Named, Part};
pub use page::{Caching, Keeping, Kind, Loading, Observed, Page, PageError, Priority, Resource};
pub use site::{Answer, Content, Frames, Framing, Site, SiteError};
