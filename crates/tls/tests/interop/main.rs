//! Against other implementations of TLS and of X.509, over the loopback interface.
//!
//! Each module is one peer, in the roles that it can take. What was negotiated is asserted
//! from the observer, and never asked of a stack. The programs that speak for a peer are
//! beside its module, and `scripts/interop` installs what runs them.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod harness;

mod chromium;
mod cryptography;
mod curl;
mod envoy;
mod go;
mod nginx;
mod node;
mod openssl;
