#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod algorithm;
mod framing;
mod padding;
