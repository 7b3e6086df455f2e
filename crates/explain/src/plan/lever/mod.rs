//! What can be done about a chain that is too long: all ways to send less of it, and what else there is, of which each is
//! a file here and a line of [`OWN`].

mod certificates;
mod edge;
mod resumption;
mod window;

use std::sync::LazyLock;

use lastbyte_link::Probability;
use lastbyte_sizes::{Resumption, StackName};
use thiserror::Error;

use super::Setting;
use lastbyte_results::reduce::{Reduction, Subject, Unavailable};
use lastbyte_study::{ArmProblem, TransportName};

/// Something that can be done.
pub struct Lever {
    /// In a word.
    pub name: &'static str,
    /// What it is, with what it is based on.
    pub doc: &'static str,
    /// What it changes.
    pub about: About,
    kind: Kind,
}

/// What a lever changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum About {
    /// What certificates cost: how many bytes are sent, how often, and how many at once.
    Certificates,
    /// Every connection, whatever its certificates.
    Paths,
}

/// Why a lever can't be pulled.
#[derive(Clone, Debug, PartialEq, Error)]
pub enum Unpulled {
    /// No arm has that with all that is said besides.
    #[error(transparent)]
    Arm(#[from] ArmProblem),
    /// The chain can't come this way.
    #[error(transparent)]
    Reduction(#[from] Unavailable),
    /// Some connections would ask DNS, and others not.
    #[error("connections resume: give arms resume=no")]
    Resumes,
    /// Nothing would change.
    #[error("it is so already")]
    IsSo,
    /// Another stack than that of the chain today would be needed.
    #[error("only {0} does that: give both chains as arms with stack={0}")]
    Stack(StackName),
    /// The chain is a file.
    #[error("the chain is the user's own: give one without intermediates")]
    OwnChain,
    /// The chain is as large as was asked for, whatever is in it.
    #[error("the chain has a size, and not certificates: name an algorithm alone")]
    Sized,
    /// There is none to leave out.
    #[error("there is no intermediate")]
    NoIntermediate,
    /// Nobody's RTT could be shorter.
    #[error("no RTT is drawn")]
    NoRtt,
    /// Nobody draws how connections begin.
    #[error("nothing is drawn")]
    NothingDrawn,
    /// The arm says itself how its connections begin.
    #[error("all connections of the arm begin in one way: leave its resume= out")]
    OneWay,
    /// As many resume, or more.
    #[error("{:.0} % resume already", 100.0 * .0)]
    ResumesAlready(f64),
    /// The window is as large, or larger.
    #[error("the window has {count} {}s already", transport.packet())]
    WindowAlready {
        /// How large it is.
        count: u32,
        /// What it counts packets of.
        transport: TransportName,
    },
}

/// How a lever is pulled.
enum Kind {
    /// In a way of its own.
    Own {
        /// The setting with it pulled, or why that can't be.
        pull: fn(&Setting, &Amounts) -> Result<Setting, Unpulled>,
        /// How far it is pulled, in words.
        words: fn(&Setting, &Amounts) -> String,
        /// Who has to do something for it.
        asks: Asks,
    },
    /// The chain comes another way.
    Reduction(&'static Reduction),
}

/// Who has to do something, for a lever to be pulled.
enum Asks {
    /// The server alone.
    Server,
    /// Clients, too: they have to have something, and to say so.
    Clients,
}

/// Those that are no way to send less of a chain.
const OWN: [Lever; 4] = [
    window::LEVER,
    certificates::LEVER,
    resumption::LEVER,
    edge::LEVER,
];

static ALL: LazyLock<Vec<Lever>> = LazyLock::new(|| {
    let ways = Reduction::ALL.into_iter();
    let ways = ways.filter(|way| way.subject == Subject::Chain);
    OWN.into_iter().chain(ways.map(Lever::of)).collect()
});

/// How far levers are pulled.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Amounts {
    /// The server's initial window, in segments.
    pub initcwnd: u32,
    /// The share of connections that resume.
    pub resumes: Probability,
    /// What is left of each RTT.
    pub rtt_share: Probability,
}

impl Default for Amounts {
    fn default() -> Amounts {
        let share = |fraction| Probability::from_fraction(fraction).unwrap_or_default();
        Amounts {
            initcwnd: 32,
            resumes: share(0.94),
            rtt_share: share(0.5),
        }
    }
}

impl Lever {
    /// All that there are.
    pub fn all() -> &'static [Lever] {
        &ALL
    }

    fn of(way: &'static Reduction) -> Lever {
        Lever {
            name: way.name,
            doc: way.doc,
            about: About::Certificates,
            kind: Kind::Reduction(way),
        }
    }

    /// A setting with it pulled.
    ///
    /// # Errors
    ///
    /// Why that can't be.
    pub fn pull(&self, setting: &Setting, amounts: &Amounts) -> Result<Setting, Unpulled> {
        let pulled = match self.kind {
            Kind::Own { pull, .. } => pull(setting, amounts)?,
            Kind::Reduction(way) => reduced(way, setting)?,
        };
        // The laboratory's DNS servers are asked on each connection, or on none.
        let asks_dns = pulled.arm.delivery.asks_dns();
        if asks_dns && pulled.arm.possible_sessions(&pulled.cell) != [Resumption::Full] {
            return Err(Unpulled::Resumes);
        }
        if pulled == *setting {
            Err(Unpulled::IsSo)
        } else {
            Ok(Setting {
                name: self.name.to_owned(),
                ..pulled
            })
        }
    }

    /// A setting with it pulled, whatever stack that would take: for arithmetic.
    ///
    /// # Errors
    ///
    /// Why that can't be.
    pub(super) fn supposed(
        &self,
        setting: &Setting,
        amounts: &Amounts,
    ) -> Result<Setting, Unpulled> {
        match self.kind {
            Kind::Own { .. } => self.pull(setting, amounts),
            Kind::Reduction(way) => {
                // Whether it can be had at all.
                way.whole(&setting.arm)?;
                Ok(Setting {
                    name: self.name.to_owned(),
                    arm: way.apply(&setting.arm)?,
                    ..setting.clone()
                })
            }
        }
    }

    /// Whether it is a way to send less of the chain.
    pub fn is_reduction(&self) -> bool {
        matches!(self.kind, Kind::Reduction(_))
    }

    /// Whether it asks something of clients, and not of the server alone.
    pub fn asks_clients(&self) -> bool {
        match &self.kind {
            Kind::Own { asks, .. } => matches!(asks, Asks::Clients),
            Kind::Reduction(_) => true,
        }
    }

    /// How far it is pulled in a setting, in words.
    pub fn words(&self, setting: &Setting, amounts: &Amounts) -> String {
        match self.kind {
            Kind::Own { words, .. } => words(setting, amounts),
            Kind::Reduction(way) => way.words.to_owned(),
        }
    }
}

impl PartialEq for Lever {
    fn eq(&self, other: &Lever) -> bool {
        self.name == other.name
    }
}

impl std::fmt::Debug for Lever {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name)
    }
}

/// The setting with a chain that comes another way.
fn reduced(way: &Reduction, setting: &Setting) -> Result<Setting, Unpulled> {
    let whole = way.whole(&setting.arm)?;
    // Or the difference would be that of the stacks, too.
    if whole.label != setting.arm.label {
        return Err(Unpulled::Stack(whole.server_stack));
    }
    Ok(Setting {
        arm: way.apply(&whole)?,
        ..setting.clone()
    })
}

/// The setting with a key of its arm said otherwise.
fn with(setting: &Setting, key: &str, value: &str) -> Result<Setting, Unpulled> {
    Ok(Setting {
        arm: setting.arm.with(key, value)?,
        ..setting.clone()
    })
}
