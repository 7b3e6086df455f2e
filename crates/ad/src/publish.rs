//! Puts certificates into DNS: as zone lines, or by dynamic update.

mod watch;

use std::net::SocketAddr;
use std::time::Duration;

use domain::tsig::Key;
use pqtlsad::Part;
use pqtlsad::flight::{InitialWindow, Plan};
use pqtlsad::record::{self, Fragment, MAX_FRAGMENTS, RecordError, RecordType};
use pqtlsad::server::{ChainError, PublicChain};
use tokio::time::sleep;

use crate::dns::{
    Answer, Change, Client, DnsError, First, Name, Question, Rtype, UpdateError, update, zone_of,
};

pub use self::watch::{Event, Loaded, Source, SourceError, Watch, WatchError, watch};
pub use crate::probe::ProbeError;

/// The server's key share, in bytes: that of X25519MLKEM768, the largest one in common use
/// (RFC 10024).
const KEY_SHARE: usize = 1120;

/// The most data in bytes that the records of one name can have together: what one message holds
/// besides header, question and OPT record. Each record takes [`RECORD`] bytes more.
const ROOM: usize = 65_535 - 12 - (255 + 4) - 64;

/// Of a record, besides its data: a pointer to the name, type, class, TTL and length.
const RECORD: usize = 2 + 2 + 2 + 4 + 2;

/// What DNS is to say of one name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Publication {
    record_type: RecordType,
    ttl: Duration,
    /// The names that own records, the server's first.
    owners: Vec<Owner>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Owner {
    name: Name,
    /// Of several chains: one of each at most.
    fragments: Vec<Fragment>,
}

/// Why nothing can be published.
#[derive(Debug, thiserror::Error)]
pub enum PublishError {
    /// The name is not a domain name.
    #[error("\"{name}\" is no domain name: {reason}")]
    Name {
        /// What was given.
        name: String,
        /// What is wrong with it.
        reason: String,
    },
    /// The chain can't be used for that.
    #[error(transparent)]
    Chain(#[from] ChainError),
    /// Clients would find a certificate for another name.
    #[error("the chain is for {}, not for {name}: clients would not use it", names.join(", "))]
    OtherName {
        /// What was asked for.
        name: String,
        /// What the certificate says.
        names: Vec<String>,
    },
    /// It saves nothing.
    #[error(
        "the server's first flight fits the initial window without a record, which would save \
         nothing: name a part with --from to publish it nevertheless"
    )]
    Needless,
    /// The certificates don't fit DNS.
    #[error(transparent)]
    Record(#[from] RecordError),
    /// The chains together don't fit.
    #[error(
        "the records of {owner} have {bytes} bytes together, and a DNS message holds {ROOM}: publish \
         fewer chains, or less of each with --from"
    )]
    TooLarge {
        /// Whose records.
        owner: Name,
        /// Their size.
        bytes: usize,
    },
    /// The further records would be of names that no wildcard covers.
    #[error(
        "{0} stands for many names, and this takes several records, which need a name of their own: \
         publish less with --from, or each name for itself"
    )]
    Wildcard(String),
    /// The name has records of the same type for another purpose.
    #[error(
        "{owner} has {record_type} records of another kind, which would be lost: use --type 65280"
    )]
    Foreign {
        /// Whose records.
        owner: Name,
        /// Of which type.
        record_type: RecordType,
    },
    /// The name is another's: records beside its alias would be ignored (RFC 2136, section 3.4.2.2).
    #[error(
        "{0} is an alias (CNAME), which has no other records: publish at the name that it stands for"
    )]
    Alias(Name),
    /// The server says that it has done the update, and has other records.
    #[error("{server} took the update, but does not have the records of {owner}: {hint}", hint = ASK_PRIMARY)]
    NotKept {
        /// The server.
        server: SocketAddr,
        /// Whose records.
        owner: Name,
    },
    /// The server that was asked which records there are does not answer.
    #[error(transparent)]
    Dns(#[from] DnsError),
    /// The server does not update its zone.
    #[error(transparent)]
    Update(#[from] UpdateError),
}

const ASK_PRIMARY: &str = "ask the zone's primary server, which answers with what it was given";

/// How often a server is asked for what it was given, which may come to its answers a moment later.
const LOOKS: u32 = 8;
const LOOK_AGAIN: Duration = Duration::from_millis(250);

/// How much of `chain` is worth publishing, with the reasons.
pub fn plan(chain: &PublicChain, window: InitialWindow) -> Plan {
    Plan::new(chain, KEY_SHARE, window)
}

/// How many certificates to publish: down to `part`, or what `plan` says.
///
/// # Errors
///
/// If there is no such part, or nothing is worth it.
pub fn count(chain: &PublicChain, part: Option<Part>, plan: &Plan) -> Result<usize, PublishError> {
    match (part, plan.choice().omitted) {
        (Some(part), _) => Ok(chain.count(part)?),
        (None, 0) => Err(PublishError::Needless),
        (None, count) => Ok(count),
    }
}

impl Publication {
    /// The records of `name`, in lower case and without a dot at the end: of each chain, so many
    /// certificates from the top.
    ///
    /// # Errors
    ///
    /// If a chain is for other names, or if it does not fit.
    pub fn new<'a>(
        name: &str,
        chains: impl IntoIterator<Item = (&'a PublicChain, usize)>,
        record_type: RecordType,
        ttl: Duration,
    ) -> Result<Publication, PublishError> {
        let mut owners = Vec::new();
        for (chain, count) in chains {
            if !chain.is_for(name) {
                return Err(PublishError::OtherName {
                    name: name.to_owned(),
                    names: chain.names().to_vec(),
                });
            }
            let list = chain.topmost(count).map_err(ChainError::from)?;
            for fragment in record::split(chain.part(count), &list)? {
                let index = fragment.index;
                while owners.len() <= usize::from(index) {
                    owners.push(Owner {
                        name: owner(name, index)?,
                        fragments: Vec::new(),
                    });
                }
                if let Some(owner) = owners.get_mut(usize::from(index))
                    && !owner.fragments.contains(&fragment)
                {
                    owner.fragments.push(fragment);
                }
            }
        }
        if name.starts_with("*.") && owners.len() > 1 {
            return Err(PublishError::Wildcard(name.to_owned()));
        }
        let publication = Publication {
            record_type,
            ttl,
            owners,
        };
        for owner in &publication.owners {
            let bytes = bytes(&publication.data(owner));
            if bytes > ROOM {
                return Err(PublishError::TooLarge {
                    owner: owner.name.clone(),
                    bytes,
                });
            }
        }
        Ok(publication)
    }

    /// As lines of a zone file (RFC 1035, section 5; RFC 3597, section 5).
    pub fn zone_lines(&self) -> String {
        let ttl = self.ttl.as_secs();
        let record_type = self.record_type;
        let lines = self.owners.iter().flat_map(|owner| {
            owner.fragments.iter().map(move |fragment| {
                let data = fragment.to_text(record_type);
                format!("{}. {ttl} IN {record_type} {data}\n", owner.name)
            })
        });
        lines.collect()
    }

    /// The number of records and their data in bytes.
    pub fn size(&self) -> (usize, usize) {
        let data: Vec<_> = self
            .owners
            .iter()
            .flat_map(|owner| self.data(owner))
            .collect();
        (data.len(), data.iter().map(Vec::len).sum())
    }

    /// Has the zone say this and nothing else: at once where it fits one message, or else so that
    /// clients find the old records or the new ones whole, as far as a message holds both. The
    /// server is asked for them afterwards.
    ///
    /// # Errors
    ///
    /// If the server does not do it, or does not have them then.
    pub async fn send(&self, server: SocketAddr, key: Option<&Key>) -> Result<(), PublishError> {
        let Some(first) = self.owners.first() else {
            return Ok(());
        };
        let zone = zone_of(server, &first.name).await?;
        self.refuse_aliases(server).await?;
        let old = self.published(server).await?;
        match update(server, &zone, &self.at_once(&old), key).await {
            Err(UpdateError::TooLong) => {
                for changes in self.step_by_step(&old) {
                    update(server, &zone, &changes, key).await?;
                }
            }
            done => done?,
        }
        self.look(server).await
    }

    /// An addition beside an alias is ignored without a word.
    async fn refuse_aliases(&self, server: SocketAddr) -> Result<(), PublishError> {
        let client = Client::new([server.into()]);
        for owner in &self.owners {
            let question = Question {
                name: owner.name.clone(),
                rtype: Rtype::CNAME,
            };
            if let Answer::Records(_) = client.ask(&question, First::Udp).await?.answer {
                return Err(PublishError::Alias(question.name));
            }
        }
        Ok(())
    }

    /// Waits until the server answers with what it was given, for a moment.
    async fn look(&self, server: SocketAddr) -> Result<(), PublishError> {
        let mut looks = 1;
        loop {
            let published = self.published(server).await?;
            let Some(owner) = self.differing(&published) else {
                return Ok(());
            };
            if looks == LOOKS {
                return Err(PublishError::NotKept { server, owner });
            }
            looks += 1;
            sleep(LOOK_AGAIN).await;
        }
    }

    /// The first name that owns something else than this.
    fn differing(&self, published: &[Published]) -> Option<Name> {
        let sorted = |mut data: Vec<Vec<u8>>| {
            data.sort();
            data
        };
        let differs = |(index, published): (usize, &Published)| {
            let owner = self.owners.get(index);
            let own = owner.map_or_else(Vec::new, |owner| self.data(owner));
            (sorted(own) != sorted(published.data.clone())).then(|| published.name.clone())
        };
        published.iter().enumerate().find_map(differs)
    }

    /// What the names own now, in order.
    async fn published(&self, server: SocketAddr) -> Result<Vec<Published>, PublishError> {
        let client = Client::new([server.into()]);
        let mut published = Vec::new();
        let Some(first) = self.owners.first() else {
            return Ok(published);
        };
        let name = first.name.to_string();
        for index in (0..MAX_FRAGMENTS).filter_map(|index| u8::try_from(index).ok()) {
            let question = Question {
                name: owner(&name, index)?,
                rtype: self.rtype(),
            };
            let data = match client.ask(&question, First::Tcp).await?.answer {
                Answer::Records(records) => records.data,
                Answer::NoData | Answer::NoSuchName => Vec::new(),
            };
            let is_foreign = |data: &Vec<u8>| {
                Fragment::decode(self.record_type, data) == Err(RecordError::NotOurs)
            };
            if data.iter().any(is_foreign) {
                return Err(PublishError::Foreign {
                    owner: question.name,
                    record_type: self.record_type,
                });
            }
            published.push(Published {
                name: question.name,
                data,
            });
        }
        Ok(published)
    }

    /// All in one update.
    fn at_once(&self, old: &[Published]) -> Vec<Change> {
        let outdated = old.iter().filter(|old| !old.data.is_empty());
        let removed = outdated.map(|old| self.removal(&old.name));
        let added = self.owners.iter().flat_map(|owner| self.additions(owner));
        removed.chain(added).collect()
    }

    /// One update after the other: the later fragments beside the old ones, then the first, which
    /// tells of the others, then the old ones go.
    fn step_by_step(&self, old: &[Published]) -> Vec<Vec<Change>> {
        let mut steps = Vec::new();
        let mut last = Vec::new();
        let replace = |owner: &Owner| {
            let mut changes = vec![self.removal(&owner.name)];
            changes.extend(self.additions(owner));
            changes
        };
        for (index, owner) in self.owners.iter().enumerate().skip(1).rev() {
            let old = old.get(index).map_or(&[][..], |old| &old.data);
            if old.is_empty() {
                steps.push(self.additions(owner).collect());
            } else if bytes(old) + bytes(&self.data(owner)) <= ROOM {
                steps.push(self.additions(owner).collect());
                last.push(replace(owner));
            } else {
                steps.push(replace(owner));
            }
        }
        steps.extend(self.owners.first().map(replace));
        steps.extend(last);
        let needless = old.iter().skip(self.owners.len());
        let needless = needless.filter(|old| !old.data.is_empty());
        steps.extend(needless.map(|old| vec![self.removal(&old.name)]));
        steps
    }

    fn removal(&self, name: &Name) -> Change {
        Change::Remove {
            name: name.clone(),
            rtype: self.rtype(),
        }
    }

    fn additions(&self, owner: &Owner) -> impl Iterator<Item = Change> {
        let name = owner.name.clone();
        self.data(owner).into_iter().map(move |data| Change::Add {
            name: name.clone(),
            rtype: self.rtype(),
            ttl: self.ttl,
            data,
        })
    }

    fn data(&self, owner: &Owner) -> Vec<Vec<u8>> {
        let fragments = owner.fragments.iter();
        fragments
            .map(|fragment| fragment.encode(self.record_type))
            .collect()
    }

    fn rtype(&self) -> Rtype {
        Rtype::from_int(self.record_type.number())
    }
}

/// What a name owns.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Published {
    name: Name,
    data: Vec<Vec<u8>>,
}

fn bytes(data: &[Vec<u8>]) -> usize {
    data.iter().map(|data| data.len() + RECORD).sum()
}

fn owner(name: &str, index: u8) -> Result<Name, PublishError> {
    let owner = record::owner(name, index);
    owner.parse().map_err(|error| PublishError::Name {
        name: owner,
        reason: format!("{error}"),
    })
}

#[cfg(test)]
mod tests;
