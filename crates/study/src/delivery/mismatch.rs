//! What a connection did otherwise than its arm says.

use lastbyte_exchange::{ChainSignal, Exchange, HelloDigest};
use lastbyte_sizes::{Group, KeyAlgorithm};
use thiserror::Error;

use super::problem::MtcProblem;

/// What a connection did otherwise than its arm says: the end of a sentence that begins with the connection.
#[derive(Debug, Error)]
pub enum Mismatch {
    /// Something that nobody asks for.
    #[error("{0}, which the arm does not ask for")]
    Unasked(&'static str),
    /// Its first connection succeeded, which was to fail.
    #[error("did not fail at first")]
    DidNotFail,
    /// It resumed nothing.
    #[error("did not resume its session: the server did not accept its ticket")]
    NotResumed,
    /// Another group, by its name or number.
    #[error("negotiated {negotiated}, not {asked}")]
    Group {
        /// What was negotiated.
        negotiated: String,
        /// What the arm says.
        asked: Group,
    },
    /// Its first hello was enough.
    #[error("needed no HelloRetryRequest: its client sent a key share for {0} after all")]
    NeedlessShare(Group),
    /// The server took no early data.
    #[error("sent early data that the server refused")]
    EarlyDataRefused,
    /// There was no early data to be sent.
    #[error("sent no early data: its session did not allow it")]
    NoEarlyData,
    /// Its server did not know the client's address.
    #[error("was sent no Retry packet, and had no token")]
    NoAddressValidation,
    /// Its client did not prove itself.
    #[error("sent no client's chain")]
    NoClientChain,
    /// Another algorithm, by its name or number.
    #[error("was signed with {signed}, which is not of a key {key}")]
    Signature {
        /// What it was signed with.
        signed: String,
        /// The key that the arm says.
        key: KeyAlgorithm,
    },
    /// More or fewer certificates.
    #[error("got {got} certificates, not {asked}")]
    Certificates {
        /// How many came.
        got: usize,
        /// How many there should be.
        asked: usize,
    },
    /// A larger or smaller message.
    #[error("got a Certificate message of {got} bytes, not {asked}")]
    CertificateBytes {
        /// What came.
        got: usize,
        /// What should.
        asked: usize,
    },
    /// The same of the client's chain.
    #[error("{0}, of the client")]
    OfClient(Box<Mismatch>),
    /// Its hellos say another thing.
    #[error("said {said} of {of}, not {asked}")]
    Signal {
        /// What was said.
        said: ChainSignal,
        /// Of what.
        of: &'static str,
        /// What should be.
        asked: ChainSignal,
    },
    /// Certificates came as they are.
    #[error("got {whose} certificates uncompressed")]
    Uncompressed {
        /// Whose they are: "its" or "its client's".
        whose: &'static str,
    },
    /// Another compression than both sides were told.
    #[error("got {whose} certificates compressed with {algorithm}, which the arm does not ask for")]
    Compression {
        /// Whose they are.
        whose: &'static str,
        /// By its name or number.
        algorithm: String,
    },
    /// Certificates came as they are.
    #[error("got its certificates as they are")]
    Unabridged,
    /// Nothing is known of its record.
    #[error("does not say what became of its DNS record")]
    NoOutcome,
    /// Its hellos have other digests.
    #[error("has hellos whose digests are {got:?}, not {asked:?}")]
    Digest {
        /// What they say.
        got: HelloDigest,
        /// What they should.
        asked: HelloDigest,
    },
    /// Nothing is known of what it should get.
    #[error("does not say what its Certificate message must have")]
    NoCertificateBytes,
    /// There is no arithmetic of what it should get.
    #[error("{0}")]
    NoArithmetic(&'static str),
    /// There is no such Merkle Tree Certificate.
    #[error(transparent)]
    Mtc(#[from] MtcProblem),
}

impl Mismatch {
    /// Whether as many certificates came as were asked for.
    ///
    /// # Errors
    ///
    /// How many came.
    pub fn check_count(exchange: &Exchange, asked: usize) -> Result<(), Mismatch> {
        let got = exchange.negotiated.certificate_count() as usize;
        if got == asked {
            Ok(())
        } else {
            Err(Mismatch::Certificates { got, asked })
        }
    }
}
