//! What can be wrong with an arm.

use std::path::PathBuf;

use lastbyte_sizes::{ChainError, Group, UnknownGroup};
use thiserror::Error;

use crate::delivery::DeliveryProblem;
use crate::value::{SizeError, ValueError};

/// The text is no arm.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("arm {arm:?}: {problem}")]
pub struct ArmError {
    /// The whole text.
    pub arm: String,
    /// What is wrong with it.
    pub problem: ArmProblem,
}

/// What is wrong with the text of an arm.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum ArmProblem {
    /// There is only a group.
    #[error("missing chain: write GROUP/CHAIN, such as \"secp256r1/rsa-2048\"")]
    NoChain,
    /// It has a character that nobody sees.
    #[error("has the character U+{:04X}, which acts on a terminal and is not seen: leave it out", u32::from(*.0))]
    Hidden(char),
    /// The group has no such name.
    #[error(transparent)]
    Group(UnknownGroup),
    /// The chain is neither an algorithm nor a path.
    #[error("unknown chain {chain:?}: {hint}")]
    UnknownChain {
        /// The algorithm that is unknown.
        chain: String,
        /// The nearest one, or all.
        hint: String,
    },
    /// Something that is not a key follows a chain that is made.
    #[error("{segment:?} is not KEY=VALUE; for a file, write {file:?}", file = format!("./{chain}/{segment}"))]
    NotAKey {
        /// The chain.
        chain: String,
        /// What follows.
        segment: String,
    },
    /// The number after the colon is no size.
    #[error(transparent)]
    Size(SizeError),
    /// No such chain can be made.
    #[error(transparent)]
    Chain(Box<ChainError>),
    /// The delivery does not go with the rest.
    #[error(transparent)]
    Delivery(#[from] DeliveryProblem),
    /// Early data is sent by those that resume, and nothing says how many these are.
    #[error("early_data= is a share of the connections that resume: add resume=50%, say")]
    NobodyResumes,
    /// Early data is sent to a server that asks for another hello.
    #[error(
        "resume=\"0rtt\" is not possible: a HelloRetryRequest ends early data: add {0} to key_share="
    )]
    AskedAgain(Group),
    /// The client would prove itself with a server's chain.
    #[error(
        "{key}={value:?} is not possible: a server shows no client's chain; name an algorithm or a PEM file"
    )]
    ServersChain {
        /// The key.
        key: &'static str,
        /// Its value.
        value: String,
    },
    /// The chain is a file, and files are sent as they are.
    #[error("{part} is for chains that are made, and {path:?} is sent as it is")]
    NotForFiles {
        /// What can't be had.
        part: String,
        /// The chain.
        path: PathBuf,
    },
    /// The chain is made, so it has its own key and root.
    #[error("{key}= is for a chain in a PEM file, and {chain} is made with its own")]
    OnlyForFiles {
        /// The key of the arm.
        key: &'static str,
        /// The chain.
        chain: String,
    },
    /// The server asks for no client's chain.
    #[error("{0}= is for a client that proves itself: add mutual=CHAIN")]
    NotMutual(&'static str),
    /// There is no such key.
    #[error("unknown key {key:?}: {hint}")]
    UnknownKey {
        /// The key.
        key: String,
        /// The nearest one, or all.
        hint: String,
    },
    /// A key stands twice.
    #[error("{0}= is given twice: leave one out")]
    Twice(&'static str),
    /// Nobody could read it: what stands behind a stroke is a key.
    #[error("{path:?} has {key}= behind a stroke, which would be read as a key: name another path")]
    ReadAsKey {
        /// The chain, or the value of a key.
        path: String,
        /// What stands there.
        key: String,
    },
    /// A key can't have this value.
    #[error("{key}={value:?} is not possible: {error}")]
    Value {
        /// The key.
        key: &'static str,
        /// Its value.
        value: String,
        /// What it can have.
        error: Box<ValueError>,
    },
    /// Something that is TCP's, or is not to be had over QUIC yet.
    #[error("transport=quic does not go with this {key}=: {why}")]
    NotOverQuic {
        /// The key.
        key: &'static str,
        /// Why, and what to do.
        why: &'static str,
    },
    /// Something that is QUIC's.
    #[error("{key}= is of QUIC: add transport=quic, or leave it out")]
    OfQuic {
        /// The key.
        key: &'static str,
    },
    /// The key is that of another delivery.
    #[error("{key}= is for {subject}: add delivery={name}")]
    OtherDelivery {
        /// The key.
        key: &'static str,
        /// What it is for.
        subject: String,
        /// The delivery that has it.
        name: String,
    },
}
