//! HTTP Archive files (HAR 1.2): read for what a page consists of, and written of loads and of pages.

mod read;
mod write;

pub use read::{HarError, MOST_BYTES, Recorded, read};
pub use write::{Titled, of_page, write};
