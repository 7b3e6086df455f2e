//! How an arm is written: `GROUP/CHAIN[:BYTESB][/KEY=VALUE...]`.

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

use lastbyte_link::{Bytes, UnitError};
use lastbyte_pki::{ChainSpec, KeyAlgorithm, PaddedCertificate, PemFiles, RootDelivery};
use lastbyte_tls::UnknownGroup;
use thiserror::Error;

use super::{Arm, ArmChain, RecordSize, mend};

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
    /// The group has no such name.
    #[error(transparent)]
    Group(UnknownGroup),
    /// The chain is neither an algorithm nor a path.
    #[error("unknown chain {chain:?}: {mend}")]
    UnknownChain {
        /// The algorithm that is unknown.
        chain: String,
        /// The nearest one, or all.
        mend: String,
    },
    /// Something that is not a key follows a chain that is made.
    #[error("{segment:?} is not KEY=VALUE; for a file, write {file:?}", file = format!("./{chain}/{segment}"))]
    NotAKey {
        /// The chain.
        chain: String,
        /// What follows.
        segment: String,
    },
    /// The number after the colon stands alone.
    #[error("missing unit in size {0:?}: did you mean \"{0}B\"?")]
    NoUnit(String),
    /// The number after the colon is no size.
    #[error(transparent)]
    Size(UnitError),
    /// No such chain can be made.
    #[error("{0}")]
    Impossible(String),
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
    /// There is no such key.
    #[error("unknown key {key:?}: {mend}")]
    UnknownKey {
        /// The key.
        key: String,
        /// The nearest one, or all.
        mend: String,
    },
    /// A key stands twice.
    #[error("{0}= is given twice: leave one out")]
    Twice(&'static str),
    /// A key can't have this value.
    #[error("{key}={value:?} is not possible: {mend}")]
    Value {
        /// The key.
        key: &'static str,
        /// Its value.
        value: String,
        /// What it can have.
        mend: String,
    },
    /// It is planned.
    #[error("{0:?} can't be measured yet: leave it out")]
    NotYet(String),
}

impl FromStr for Arm {
    type Err = ArmError;

    fn from_str(text: &str) -> Result<Arm, ArmError> {
        parse(text).map_err(|problem| ArmError {
            arm: text.to_owned(),
            problem,
        })
    }
}

impl fmt::Display for Arm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.label)
    }
}

/// What can follow the chain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Setting {
    Intermediates,
    Root,
    RecordSize,
    Stack,
    Key,
    Ca,
    Delivery,
    Padding,
    Scts,
    SctAlgorithm,
    Mutual,
    Resume,
}

impl Setting {
    const ALL: [Setting; 12] = [
        Setting::Intermediates,
        Setting::Root,
        Setting::RecordSize,
        Setting::Stack,
        Setting::Key,
        Setting::Ca,
        Setting::Delivery,
        Setting::Padding,
        Setting::Scts,
        Setting::SctAlgorithm,
        Setting::Mutual,
        Setting::Resume,
    ];

    fn name(self) -> &'static str {
        match self {
            Setting::Intermediates => "intermediates",
            Setting::Root => "root",
            Setting::RecordSize => "record_size",
            Setting::Stack => "stack",
            Setting::Key => "key",
            Setting::Ca => "ca",
            Setting::Delivery => "delivery",
            Setting::Padding => "padding",
            Setting::Scts => "scts",
            Setting::SctAlgorithm => "sct_algorithm",
            Setting::Mutual => "mutual",
            Setting::Resume => "resume",
        }
    }

    fn parse(text: &str) -> Result<Setting, ArmProblem> {
        Setting::ALL
            .into_iter()
            .find(|key| key.name() == text)
            .ok_or_else(|| ArmProblem::UnknownKey {
                key: text.to_owned(),
                mend: mend(text, Setting::ALL.map(Setting::name)),
            })
    }

    fn refuse(self, value: &str, mend: impl Into<String>) -> ArmProblem {
        ArmProblem::Value {
            key: self.name(),
            value: value.to_owned(),
            mend: mend.into(),
        }
    }
}

fn parse(text: &str) -> Result<Arm, ArmProblem> {
    let (group, rest) = text.split_once('/').unwrap_or((text, ""));
    let group = group.parse().map_err(ArmProblem::Group)?;
    let (chain, options) = split_options(rest)?;
    if chain.is_empty() {
        return Err(ArmProblem::NoChain);
    }

    let mut record_size = RecordSize::default();
    let mut chain = parse_chain(&chain)?;
    for (key, value) in &options {
        match (key, &mut chain) {
            (Setting::RecordSize, _) => record_size = parse_record_size(value)?,
            (Setting::Stack, _) => parse_stack(value)?,
            (Setting::Intermediates, ArmChain::Made(spec)) => {
                spec.intermediates = parse_intermediates(value)?;
            }
            (Setting::Root, ArmChain::Made(spec)) => spec.root = parse_root(value)?,
            (Setting::Padding, ArmChain::Made(spec)) => spec.padding = parse_padding(value)?,
            (Setting::Scts, ArmChain::Made(spec)) => spec.scts = parse_scts(value)?,
            (Setting::SctAlgorithm, ArmChain::Made(spec)) => {
                spec.sct_algorithm = parse_sct_algorithm(value)?;
            }
            (Setting::Key, ArmChain::Pem(files)) => files.key = Some(parse_path(*key, value)?),
            (Setting::Ca, ArmChain::Pem(files)) => files.ca = Some(parse_path(*key, value)?),
            (
                Setting::Intermediates
                | Setting::Root
                | Setting::Padding
                | Setting::Scts
                | Setting::SctAlgorithm,
                ArmChain::Pem(files),
            ) => {
                return Err(ArmProblem::NotForFiles {
                    part: format!("{}=", key.name()),
                    path: files.chain.clone(),
                });
            }
            (Setting::Key | Setting::Ca, ArmChain::Made(spec)) => {
                return Err(ArmProblem::OnlyForFiles {
                    key: key.name(),
                    chain: spec.to_string(),
                });
            }
            (Setting::Delivery | Setting::Mutual | Setting::Resume, _) => {
                return Err(ArmProblem::NotYet(key.name().to_owned()));
            }
        }
    }
    if let ArmChain::Made(spec) = &chain {
        spec.validate()
            .map_err(|problem| ArmProblem::Impossible(problem.to_string()))?;
    }
    Ok(Arm {
        name: text.to_owned(),
        label: text.to_owned(),
        group,
        chain,
        record_size,
    })
}

/// Parts the chain from the keys after it. A segment that does not begin a key belongs to what
/// stands before it, since both chains and values can be paths.
fn split_options(text: &str) -> Result<(String, Vec<(Setting, String)>), ArmProblem> {
    let mut chain: Option<String> = None;
    let mut options: Vec<(Setting, String)> = Vec::new();
    for segment in text.split('/') {
        match segment
            .split_once('=')
            .filter(|(name, _)| looks_like_key(name))
        {
            Some((name, value)) => {
                let key = Setting::parse(name)?;
                if options.iter().any(|(earlier, _)| *earlier == key) {
                    return Err(ArmProblem::Twice(key.name()));
                }
                options.push((key, value.to_owned()));
            }
            None => {
                let path = options
                    .last_mut()
                    .map(|(_, value)| value)
                    .or(chain.as_mut());
                match path {
                    Some(path) => {
                        path.push('/');
                        path.push_str(segment);
                    }
                    None => chain = Some(segment.to_owned()),
                }
            }
        }
    }
    Ok((chain.unwrap_or_default(), options))
}

fn looks_like_key(name: &str) -> bool {
    !name.is_empty() && name.chars().all(|c| c.is_ascii_alphabetic() || c == '_')
}

fn parse_chain(text: &str) -> Result<ArmChain, ArmProblem> {
    if let Some((chain, size)) = text.rsplit_once(':')
        && is_path(chain)
        && size.parse::<Bytes>().is_ok()
    {
        return Err(ArmProblem::NotForFiles {
            part: "a size".into(),
            path: chain.into(),
        });
    }
    if let Some((chain, segment)) = text.split_once('/')
        && parse_made(chain).is_ok()
    {
        return Err(ArmProblem::NotAKey {
            chain: chain.into(),
            segment: segment.into(),
        });
    }
    if is_path(text) {
        return Ok(ArmChain::Pem(PemFiles {
            chain: text.into(),
            key: None,
            ca: None,
        }));
    }
    parse_made(text).map(ArmChain::Made)
}

fn parse_made(text: &str) -> Result<ChainSpec, ArmProblem> {
    let (algorithms, certificate_bytes) = match text.rsplit_once(':') {
        Some((algorithms, size)) => (algorithms, Some(parse_size(size)?)),
        None => (text, None),
    };
    // LEAF, LEAF+CA or LEAF+CA+ROOT: who is not named is as the one below.
    let (leaf, above) = algorithms
        .split_once('+')
        .unwrap_or((algorithms, algorithms));
    let (ca, root) = above.split_once('+').unwrap_or((above, above));
    Ok(ChainSpec {
        ca: parse_algorithm(ca)?,
        root_key: parse_algorithm(root)?,
        certificate_bytes,
        ..ChainSpec::new(parse_algorithm(leaf)?)
    })
}

fn parse_size(text: &str) -> Result<usize, ArmProblem> {
    if !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(ArmProblem::NoUnit(text.to_owned()));
    }
    let Bytes(bytes) = text.parse().map_err(ArmProblem::Size)?;
    Ok(usize::try_from(bytes).unwrap_or(usize::MAX))
}

fn is_path(chain: &str) -> bool {
    chain.contains('/')
        || [".pem", ".crt", ".cer"]
            .iter()
            .any(|end| chain.ends_with(end))
}

fn parse_algorithm(text: &str) -> Result<KeyAlgorithm, ArmProblem> {
    text.parse().map_err(|_| ArmProblem::UnknownChain {
        chain: text.to_owned(),
        mend: mend(text, KeyAlgorithm::ALL.map(KeyAlgorithm::name)),
    })
}

fn parse_intermediates(value: &str) -> Result<u8, ArmProblem> {
    value
        .parse()
        .ok()
        .filter(|intermediates| *intermediates <= ChainSpec::MAX_INTERMEDIATES)
        .ok_or_else(|| {
            Setting::Intermediates
                .refuse(value, format!("use 0 to {}", ChainSpec::MAX_INTERMEDIATES))
        })
}

fn parse_root(value: &str) -> Result<RootDelivery, ArmProblem> {
    match value {
        "sent" => Ok(RootDelivery::Sent),
        "omitted" => Ok(RootDelivery::Omitted),
        _ => Err(Setting::Root.refuse(value, mend(value, ["sent", "omitted"]))),
    }
}

fn parse_padding(value: &str) -> Result<PaddedCertificate, ArmProblem> {
    match value {
        "end-entity" => Ok(PaddedCertificate::EndEntity),
        "last" => Ok(PaddedCertificate::Last),
        _ => Err(Setting::Padding.refuse(value, mend(value, ["end-entity", "last"]))),
    }
}

fn parse_scts(value: &str) -> Result<u8, ArmProblem> {
    value
        .parse()
        .ok()
        .filter(|scts| *scts <= ChainSpec::MAX_SCTS)
        .ok_or_else(|| Setting::Scts.refuse(value, format!("use 0 to {}", ChainSpec::MAX_SCTS)))
}

fn parse_sct_algorithm(value: &str) -> Result<KeyAlgorithm, ArmProblem> {
    let mend = || mend(value, KeyAlgorithm::ALL.map(KeyAlgorithm::name));
    value
        .parse()
        .map_err(|_| Setting::SctAlgorithm.refuse(value, mend()))
}

fn parse_record_size(value: &str) -> Result<RecordSize, ArmProblem> {
    const MAX: u16 = 16384;
    if value == "auto" {
        return Ok(RecordSize::FirstSegment);
    }
    value
        .parse()
        .ok()
        .filter(|bytes| (1..=MAX).contains(bytes))
        .map(RecordSize::Fixed)
        .ok_or_else(|| Setting::RecordSize.refuse(value, format!("use 1 to {MAX} bytes, or auto")))
}

fn parse_stack(value: &str) -> Result<(), ArmProblem> {
    match value {
        "openssl" => Ok(()),
        "s2n-tls" | "rustls" => Err(ArmProblem::NotYet(format!("stack={value}"))),
        _ => Err(Setting::Stack.refuse(value, mend(value, ["openssl"]))),
    }
}

fn parse_path(key: Setting, value: &str) -> Result<PathBuf, ArmProblem> {
    if value.is_empty() {
        return Err(key.refuse(value, "name a PEM file"));
    }
    Ok(value.into())
}
