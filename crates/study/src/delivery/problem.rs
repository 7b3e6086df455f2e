//! What can be wrong with a delivery: with what an arm has besides, with what it is compared with, and with a certificate that is
//! to be made.

use lastbyte_mtc::id::IdError;
use lastbyte_mtc::issue::IssueError;
use lastbyte_mtc::landmark::LandmarkError;
use lastbyte_sizes::StackName;
use thiserror::Error;

/// An arm can't have its delivery and all that it asks for besides.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum DeliveryProblem {
    /// Its sessions are resumed: nobody sends certificates.
    #[error("a resumed session has no certificates{what}: leave resume= out")]
    Resumed {
        /// What would be done with them, with a blank before it, if there is something to say.
        what: &'static str,
    },
    /// There is no intermediate to leave out.
    #[error(
        "its chain has no intermediate to leave out: leave delivery= out, or ask for intermediates=1"
    )]
    NoIntermediate,
    /// What is padded would be left out.
    #[error("padding=last makes larger what is left out, so the size would be lost: leave it out")]
    PaddingLeftOut,
    /// A fallback is for clients that name anchors.
    #[error(
        "a client that sends no flag gets the whole chain: fallback= is for signal=trust-anchors"
    )]
    NoFallback,
    /// Nothing would be sent at all.
    #[error(
        "TLS 1.3 has no empty Certificate message: with from=end-entity, use delivery=pqtls-ad-raw-key"
    )]
    EmptyCertificate,
    /// What stands for an end-entity's certificate has none above it.
    #[error(
        "a raw key or a carrier stands for the end-entity certificate: leave from= out, or use delivery=pqtls-ad"
    )]
    StandsForEndEntity,
    /// Both sides have no compression in common.
    #[error(
        "the server compresses with {server} and the client takes {client}, so nothing would be compressed: \
         name an algorithm of both in compression= and client_compression="
    )]
    NothingInCommon {
        /// Those of the server.
        server: String,
        /// Those of the client.
        client: String,
    },
    /// One certificate comes alone.
    #[error(
        "a Merkle Tree Certificate is made for the chain's key and names, and has no place for {what}: leave it out"
    )]
    NoPlace {
        /// What the arm asks for.
        what: &'static str,
    },
    /// A standalone certificate has no landmark.
    #[error("a standalone certificate needs no landmark, so no client is stale: leave client= out")]
    NoLandmark,
    /// A stale client says nothing.
    #[error(
        "a server that is told nothing sends what a stale client can't verify: leave hello= out"
    )]
    StaleUntold,
    /// rustls has no extension for it.
    #[error("rustls sends no trust_anchors: add hello=nothing")]
    RustlsNamesNone,
}

/// An arm and a baseline are of two stacks, whose difference would be larger than what the arm's delivery makes.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error(
    "arm \"{arm}\" {what}, and arm \"{baseline}\" has another stack, so the difference would be that of the stacks too: \
     have that one say {}",
    wanted(*.client, *.server)
)]
pub struct OtherStack {
    /// The arm.
    pub arm: String,
    /// What it is, as in "is compressed".
    pub what: &'static str,
    /// What it is compared with.
    pub baseline: String,
    /// The client's stack of the arm.
    pub client: StackName,
    /// The server's.
    pub server: StackName,
}

fn wanted(client: StackName, server: StackName) -> String {
    if client == server {
        format!("stack={server} and no other client_stack=")
    } else {
        format!("stack={server} and client_stack={client}")
    }
}

/// There is no such Merkle Tree Certificate.
#[derive(Debug, Error)]
pub enum MtcProblem {
    /// Of a name of a log, a landmark or a cosigner.
    #[error(transparent)]
    Id(#[from] IdError),
    /// Of an entry of the log.
    #[error(transparent)]
    Issue(#[from] IssueError),
    /// Of a landmark.
    #[error(transparent)]
    Landmark(#[from] LandmarkError),
    /// Nothing that the server has is of use to a client.
    #[error("the server has nothing for such a client")]
    Nothing,
}

/// For those who tell a line.
impl From<MtcProblem> for String {
    fn from(problem: MtcProblem) -> String {
        problem.to_string()
    }
}
