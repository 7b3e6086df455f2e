//! What the peers' modules share: our two ends on sockets, programs, and expectations.
//!
//! Nothing here waits longer than [`PATIENCE`].

mod arm;
mod endpoint;
mod program;

use std::time::Duration;

pub(crate) use arm::{Arm, arm, arms, classical, classical_arms, post_quantum, store, stranger};
pub(crate) use endpoint::{Server, get, refuse};
pub(crate) use program::{Ended, Program, installed, installed_at, tool};

/// How long a test waits for a peer. Most of it is for a machine that does other things.
pub(crate) const PATIENCE: Duration = Duration::from_secs(30);

/// What every response carries.
pub(crate) const BODY: &str = "hello from the server";
