//! Ways to send less. One is a file here and a line of [`Reduction::ALL`].

mod abridged;
mod compressed;
mod elided;
mod mtc;
mod pqtls_ad;
mod resumption;
mod trimmed;

use thiserror::Error;

use lastbyte_study::{Arm, ArmChain, ArmProblem, Delivery};

/// Another arm, or why it can't be had.
type Change = fn(&Arm) -> Result<Arm, Unavailable>;

/// Why a way to send less can't be had for a chain.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum Unavailable {
    /// No arm has it with all that is said besides.
    #[error(transparent)]
    Arm(#[from] ArmProblem),
    /// The chain comes another way already.
    #[error("delivery={0} is there already: leave it out")]
    Delivered(&'static str),
    /// A size hides what became of it.
    #[error("the chain has a size, and is made as large again: name an algorithm alone")]
    Sized,
    /// Padding is no certificate.
    #[error("the chain is padded, and padding says nothing of how real certificates compress")]
    Padded,
    /// What companies can do for themselves.
    #[error(
        "the chain is a public site's, as it has timestamps, and needs cosigners that browsers know: ask with \
         --chain-profile private"
    )]
    Public,
}

/// A way to send less than a whole chain.
pub struct Reduction {
    /// In a word or two.
    pub name: &'static str,
    /// What it is, with its source.
    pub doc: &'static str,
    /// How it is done here, in a few words.
    pub words: &'static str,
    /// What it does it to.
    pub subject: Subject,
    /// What clients must have before they connect, if anything.
    pub holds: Option<Holds>,
    /// What happens to clients that lack it.
    pub stale: &'static str,
    /// Whether browsers have it.
    pub had: Had,
    /// Who has it today, with the date of that.
    pub support: &'static str,
    /// The arm that sends the whole chain with which it is compared.
    whole: Change,
    /// The arm that sends less than that.
    apply: Change,
    /// The same where clients lack what they should have.
    lacking: Option<Change>,
}

/// Whether a way can be taken today.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Had {
    /// Browsers take it.
    Today,
    /// Experiments and drafts have it.
    Experiments,
}

/// What a way to send less changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Subject {
    /// How a chain comes.
    Chain,
    /// Which connections need a chain.
    Session,
}

/// What clients must have before they connect.
#[derive(Clone, Copy)]
pub struct Holds {
    /// In words.
    pub what: &'static str,
    /// How old it may be, in words.
    pub age: &'static str,
    /// How much it is, for a chain of this arm; `None` where that is not known.
    pub bytes: fn(&Arm) -> Option<u64>,
}

impl Reduction {
    /// All that there are.
    pub const ALL: [&'static Reduction; 12] = [
        &trimmed::REDUCTION,
        &compressed::REDUCTION,
        &abridged::REDUCTION,
        &elided::FLAG,
        &elided::ANCHORS,
        &mtc::LANDMARK,
        &mtc::STANDALONE,
        &mtc::PRIVATE,
        &pqtls_ad::REDUCTION,
        &pqtls_ad::RAW_KEY,
        &resumption::REDUCTION,
        &resumption::EARLY_DATA,
    ];

    /// The whole chain on the stacks that it needs.
    ///
    /// # Errors
    ///
    /// Why it can't be had for this chain.
    pub fn whole(&self, arm: &Arm) -> Result<Arm, Unavailable> {
        match arm.delivery {
            Delivery::Full => (self.whole)(arm),
            _ => Err(Unavailable::Delivered(arm.delivery.name())),
        }
    }

    /// The same chain, sent so.
    ///
    /// # Errors
    ///
    /// Why it can't be had for this chain.
    pub fn apply(&self, whole: &Arm) -> Result<Arm, Unavailable> {
        (self.apply)(whole)
    }

    /// The same, with clients that lack what they should have, if there is such a thing.
    ///
    /// # Errors
    ///
    /// Why it can't be had for this chain.
    pub fn stale(&self, whole: &Arm) -> Result<Option<Arm>, Unavailable> {
        self.lacking.map(|lacking| lacking(whole)).transpose()
    }
}

impl PartialEq for Reduction {
    fn eq(&self, other: &Reduction) -> bool {
        self.name == other.name
    }
}

impl std::fmt::Debug for Reduction {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name)
    }
}

/// What changes certificates needs some of the chain's own size: a size that was asked for hides what became of it.
fn unless_sized(arm: &Arm) -> Result<Arm, Unavailable> {
    match &arm.chain {
        ArmChain::Made(spec) if spec.certificate_bytes.is_some() => Err(Unavailable::Sized),
        _ => as_it_is(arm),
    }
}

/// For what any stack can do.
fn as_it_is(arm: &Arm) -> Result<Arm, Unavailable> {
    Ok(arm.clone())
}

/// For what rustls alone can do: both arms run on it.
fn on_rustls(arm: &Arm) -> Result<Arm, Unavailable> {
    with(arm, &[("stack", "rustls")])
}

/// The arm with some keys said otherwise.
fn with(arm: &Arm, said: &[(&str, &str)]) -> Result<Arm, Unavailable> {
    Ok(arm.with_all(said)?)
}

/// The same of an arm with a chain that compresses as real ones do.
fn unless_padded(arm: &Arm, said: &[(&str, &str)]) -> Result<Arm, Unavailable> {
    match &arm.chain {
        ArmChain::Made(spec) if spec.certificate_bytes.is_some() => Err(Unavailable::Padded),
        _ => with(arm, said),
    }
}
