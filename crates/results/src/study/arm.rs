//! How an arm is written: `GROUP/CHAIN[:BYTESB][/KEY=VALUE...]`.

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

use lastbyte_link::{Bytes, Probability, UnitError, is_hidden, nearest};
use lastbyte_sizes::framing::MAX_PLAINTEXT;
use lastbyte_sizes::{
    ChainRole, ChainSpec, Group, Host, KeyAlgorithm, LeafExtension, PaddedCertificate, PemFiles,
    Resumption, RootDelivery, SlhDsa, StackName, UnknownGroup,
};
use thiserror::Error;

use super::delivery::SetError;
use super::{Arm, ArmChain, Delivery, Flush, RecordSize, Server, Sessions};

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
    /// A key can't have this value.
    #[error("{key}={value:?} is not possible: {hint}")]
    Value {
        /// The key.
        key: &'static str,
        /// Its value.
        value: String,
        /// What it can have.
        hint: String,
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

impl FromStr for Arm {
    type Err = ArmError;

    fn from_str(text: &str) -> Result<Arm, ArmError> {
        let hidden = text.chars().find(|c| is_hidden(*c));
        let parsed = match hidden {
            Some(character) => Err(ArmProblem::Hidden(character)),
            None => parse(text),
        };
        parsed.map_err(|problem| ArmError {
            arm: text.to_owned(),
            problem,
        })
    }
}

impl Arm {
    /// The same arm with a key said otherwise.
    ///
    /// # Errors
    ///
    /// Why it can't have that, in one line.
    pub fn with(&self, key: &str, value: &str) -> Result<Arm, String> {
        self.with_all(&[(key, value)])
    }

    /// The same arm with some keys said otherwise, none of which need be possible without the others.
    ///
    /// # Errors
    ///
    /// Why it can't have these, in one line.
    pub fn with_all(&self, said: &[(&str, &str)]) -> Result<Arm, String> {
        self.saying(&[], said)
    }

    /// The same arm silent about some keys, and with others said otherwise.
    ///
    /// # Errors
    ///
    /// Why it can't be so, in one line.
    pub fn saying(&self, unsaid: &[&str], said: &[(&str, &str)]) -> Result<Arm, String> {
        let is_kept = |segment: &&str| {
            let name = key_of(segment).unwrap_or_default();
            !unsaid.contains(&name) && !said.iter().any(|(key, _)| name == *key)
        };
        let kept = self.label.split('/').filter(is_kept);
        let said = said.iter().map(|(key, value)| format!("{key}={value}"));
        let segments: Vec<String> = kept.map(str::to_owned).chain(said).collect();
        let arm = segments.join("/").parse();
        arm.map_err(|error: ArmError| error.problem.to_string())
    }

    /// The same arm with a Merkle Tree Certificate in the place of its chain: `form` is the value of `delivery=`. It comes alone,
    /// and its proof is what intermediates and timestamps are for.
    ///
    /// # Errors
    ///
    /// Why it can't have that, in one line.
    pub fn as_merkle_tree_certificate(&self, form: &str) -> Result<Arm, String> {
        // rustls can't negotiate it, and sends it to all.
        let is_unsaid = [self.client_stack, self.server_stack].contains(&StackName::Rustls);
        let hello = is_unsaid.then_some(("hello", "nothing"));
        let said: Vec<_> = [("delivery", form)].into_iter().chain(hello).collect();
        self.saying(&["intermediates", "scts", "sct_algorithm"], &said)
    }

    /// Whether the arm itself says this key.
    pub fn says(&self, key: &str) -> bool {
        let mut segments = self.label.split('/');
        segments.any(|segment| key_of(segment) == Some(key))
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
    Chain(ChainSetting),
    /// The same of the client's chain.
    ClientChain(ChainSetting),
    RecordSize,
    Stack,
    ClientStack,
    KeyShare,
    Mutual,
    Resume,
    EarlyData,
    Tickets,
    MaxCertList,
    Flush,
    ClientHelloSplit,
    Delivery,
    Server,
    /// A key that one delivery has.
    OfDelivery(&'static str),
}

/// What a chain can have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ChainSetting {
    Intermediates,
    Root,
    Padding,
    Scts,
    SctAlgorithm,
    Names,
    LeafWithout,
    Key,
    Ca,
}

impl ChainSetting {
    const ALL: [ChainSetting; 9] = [
        ChainSetting::Intermediates,
        ChainSetting::Root,
        ChainSetting::Padding,
        ChainSetting::Scts,
        ChainSetting::SctAlgorithm,
        ChainSetting::Names,
        ChainSetting::LeafWithout,
        ChainSetting::Key,
        ChainSetting::Ca,
    ];

    /// What it is called of the server's chain, and of the client's.
    fn names(self) -> [&'static str; 2] {
        match self {
            ChainSetting::Intermediates => ["intermediates", "client_intermediates"],
            ChainSetting::Root => ["root", "client_root"],
            ChainSetting::Padding => ["padding", "client_padding"],
            ChainSetting::Scts => ["scts", "client_scts"],
            ChainSetting::SctAlgorithm => ["sct_algorithm", "client_sct_algorithm"],
            ChainSetting::Names => ["names", "client_names"],
            ChainSetting::LeafWithout => ["leaf_without", "client_leaf_without"],
            ChainSetting::Key => ["key", "client_key"],
            ChainSetting::Ca => ["ca", "client_ca"],
        }
    }
}

impl Setting {
    fn all() -> Vec<Setting> {
        let others = [
            Setting::RecordSize,
            Setting::Stack,
            Setting::ClientStack,
            Setting::KeyShare,
            Setting::Mutual,
            Setting::Resume,
            Setting::EarlyData,
            Setting::Tickets,
            Setting::MaxCertList,
            Setting::Flush,
            Setting::ClientHelloSplit,
            Setting::Delivery,
            Setting::Server,
        ];
        (ChainSetting::ALL.into_iter().map(Setting::Chain))
            .chain(others)
            .chain(Delivery::keys().map(Setting::OfDelivery))
            .chain(ChainSetting::ALL.into_iter().map(Setting::ClientChain))
            .collect()
    }

    fn name(self) -> &'static str {
        match self {
            Setting::Chain(setting) => setting.names()[0],
            Setting::ClientChain(setting) => setting.names()[1],
            Setting::RecordSize => "record_size",
            Setting::Stack => "stack",
            Setting::ClientStack => "client_stack",
            Setting::KeyShare => "key_share",
            Setting::Mutual => "mutual",
            Setting::Resume => "resume",
            Setting::EarlyData => "early_data",
            Setting::Tickets => "tickets",
            Setting::MaxCertList => "max_cert_list",
            Setting::Flush => "flush",
            Setting::ClientHelloSplit => "client_hello_split",
            Setting::Delivery => "delivery",
            Setting::Server => "server",
            Setting::OfDelivery(name) => name,
        }
    }

    fn parse(text: &str) -> Result<Setting, ArmProblem> {
        let all = Setting::all();
        let found = all.iter().find(|key| key.name() == text);
        found.copied().ok_or_else(|| ArmProblem::UnknownKey {
            key: text.to_owned(),
            hint: nearest(text, all.iter().map(|key| key.name())),
        })
    }

    fn refuse(self, value: &str, hint: impl Into<String>) -> ArmProblem {
        ArmProblem::Value {
            key: self.name(),
            value: value.to_owned(),
            hint: hint.into(),
        }
    }
}

/// The most tickets that a server sends.
pub(crate) const MOST_TICKETS: u8 = 10;

/// The same with group and algorithms in the letters that they have: `x25519mlkem768/ML-DSA-44` is `X25519MLKEM768/ml-dsa-44`.
fn in_usual_letters(text: &str) -> String {
    let of = |word: &str, names: &[&'static str]| {
        let name = names.iter().find(|name| name.eq_ignore_ascii_case(word));
        name.copied().unwrap_or(word).to_owned()
    };
    let group = |word: &str| of(word, &Group::ALL.map(Group::name));
    let algorithm = |word: &str| of(word, &KeyAlgorithm::ALL.map(KeyAlgorithm::name));
    let chain = |word: &str| {
        let (keys, size) = word.split_at(word.rfind(':').unwrap_or(word.len()));
        let keys: Vec<String> = keys.split('+').map(algorithm).collect();
        keys.join("+") + size
    };
    let segments = text.split('/').enumerate();
    let segments = segments.map(|(place, segment)| match place {
        0 => group(segment),
        1 => chain(segment),
        _ => segment.to_owned(),
    });
    segments.collect::<Vec<_>>().join("/")
}

fn parse(text: &str) -> Result<Arm, ArmProblem> {
    let text = &in_usual_letters(text);
    let (group, rest) = text.split_once('/').unwrap_or((text, ""));
    let group = group.parse().map_err(ArmProblem::Group)?;
    let (chain, options) = split_options(rest)?;
    if chain.is_empty() {
        return Err(ArmProblem::NoChain);
    }

    let mut arm = Arm::usual(text, group, parse_chain(&chain)?);
    let mutual = options.iter().find(|(key, _)| *key == Setting::Mutual);
    if let Some((key, value)) = mutual {
        let mut chain = parse_chain(value)?;
        match &mut chain {
            ArmChain::Made(spec) => spec.role = ChainRole::Client,
            ArmChain::Pem(files) if files.host().is_some() => {
                let hint = "a server shows no client's chain; name an algorithm or a PEM file";
                return Err(key.refuse(value, hint));
            }
            ArmChain::Pem(_) => {}
        }
        arm.client_chain = Some(chain);
    }
    let delivery = options.iter().find(|(key, _)| *key == Setting::Delivery);
    if let Some((key, value)) = delivery {
        arm.delivery = Delivery::named(value).map_err(|hint| key.refuse(value, hint))?;
    }
    for (key, value) in &options {
        set(&mut arm, *key, value)?;
    }
    (arm.delivery.check_arm(&arm)).map_err(ArmProblem::Impossible)?;
    // The client's is the server's unless it has a key of its own.
    if !options.iter().any(|(key, _)| *key == Setting::ClientStack) {
        arm.client_stack = arm.server_stack;
    }
    let early_data = options.iter().any(|(key, _)| *key == Setting::EarlyData);
    if early_data
        && !matches!(arm.sessions, Sessions::Share { resumes, .. } if resumes != Probability::ZERO)
    {
        return Err(ArmProblem::Impossible(
            "early_data= is a share of the connections that resume: add resume=50%, say".to_owned(),
        ));
    }
    if (early_data || arm.resumption == Resumption::EarlyData)
        && !arm.key_shares.contains(&arm.group)
    {
        return Err(Setting::Resume.refuse(
            "0rtt",
            format!(
                "a HelloRetryRequest ends early data: add {} to key_share=",
                arm.group
            ),
        ));
    }
    for chain in [Some(&arm.chain), arm.client_chain.as_ref()] {
        if let Some(ArmChain::Made(spec)) = chain {
            spec.validate()
                .map_err(|problem| ArmProblem::Impossible(problem.to_string()))?;
        }
    }
    Ok(arm)
}

fn set(arm: &mut Arm, key: Setting, value: &str) -> Result<(), ArmProblem> {
    match key {
        // Read before all others, whose subject they are.
        Setting::Mutual | Setting::Delivery => {}
        Setting::Chain(setting) => return set_of_chain(&mut arm.chain, setting, key, value),
        Setting::ClientChain(setting) => {
            let chain = (arm.client_chain.as_mut()).ok_or(ArmProblem::NotMutual(key.name()))?;
            return set_of_chain(chain, setting, key, value);
        }
        Setting::RecordSize => arm.record_size = parse_record_size(value)?,
        Setting::Stack => arm.server_stack = parse_stack(key, value)?,
        Setting::ClientStack => arm.client_stack = parse_stack(key, value)?,
        Setting::KeyShare => {
            arm.key_shares = value
                .split('+')
                .map(|group| group.parse().map_err(ArmProblem::Group))
                .collect::<Result<_, _>>()?;
        }
        Setting::Resume => {
            if value.ends_with('%') {
                let (_, early_data) = arm.sessions.shares();
                arm.sessions = Sessions::Share {
                    resumes: parse_share(key, value)?,
                    early_data,
                };
                return Ok(());
            }
            let names = Resumption::ALL.map(Resumption::name);
            let refused = |_| key.refuse(value, nearest(value, names));
            arm.resumption = value.parse().map_err(refused)?;
            arm.sessions = Sessions::Fixed;
        }
        Setting::EarlyData => {
            let (resumes, _) = arm.sessions.shares();
            arm.sessions = Sessions::Share {
                resumes,
                early_data: parse_share(key, value)?,
            };
        }
        Setting::Tickets => arm.tickets = parse_number(key, value, MOST_TICKETS)?,
        Setting::MaxCertList => arm.max_cert_list = Some(parse_size(value)?),
        Setting::Flush => {
            arm.flush = value
                .parse()
                .map_err(|_| key.refuse(value, nearest(value, Flush::ALL.map(Flush::name))))?;
        }
        Setting::ClientHelloSplit => {
            let bytes = parse_size(value)?;
            let bytes = u16::try_from(bytes).ok().filter(|bytes| *bytes > 0);
            arm.client_hello_split =
                Some(bytes.ok_or_else(|| key.refuse(value, "use 1B to 65535B"))?);
        }
        Setting::Server => {
            let names = Server::ALL.map(Server::name);
            let refused = |_| key.refuse(value, nearest(value, names));
            arm.server = value.parse().map_err(refused)?;
        }
        Setting::OfDelivery(_) => set_of_delivery(&mut arm.delivery, key, value)?,
    }
    Ok(())
}

fn set_of_delivery(delivery: &mut Delivery, key: Setting, value: &str) -> Result<(), ArmProblem> {
    delivery
        .set(key.name(), value)
        .map_err(|error| match error {
            SetError::Value(hint) => key.refuse(value, hint),
            SetError::NotIts { subject, name } => ArmProblem::OtherDelivery {
                key: key.name(),
                subject,
                name,
            },
        })
}

/// `key` is how it is written.
fn set_of_chain(
    chain: &mut ArmChain,
    setting: ChainSetting,
    key: Setting,
    value: &str,
) -> Result<(), ArmProblem> {
    match (setting, chain) {
        (ChainSetting::Key, ArmChain::Pem(files)) => files.key = Some(parse_path(key, value)?),
        (ChainSetting::Ca, ArmChain::Pem(files)) => files.ca = Some(parse_path(key, value)?),
        (ChainSetting::Root, ArmChain::Pem(files)) if files.host().is_none() => {
            files.root = parse_root(key, value)?;
        }
        (_, ArmChain::Pem(files)) => {
            return Err(ArmProblem::NotForFiles {
                part: format!("{}=", key.name()),
                path: files.chain.clone(),
            });
        }
        (ChainSetting::Key | ChainSetting::Ca, ArmChain::Made(spec)) => {
            return Err(ArmProblem::OnlyForFiles {
                key: key.name(),
                chain: ChainSpec {
                    role: ChainRole::Server,
                    ..spec.clone()
                }
                .to_string(),
            });
        }
        (ChainSetting::Intermediates, ArmChain::Made(spec)) => {
            spec.intermediates = parse_number(key, value, ChainSpec::MAX_INTERMEDIATES)?;
        }
        (ChainSetting::Scts, ArmChain::Made(spec)) => {
            spec.scts = parse_number(key, value, ChainSpec::MAX_SCTS)?;
        }
        (ChainSetting::SctAlgorithm, ArmChain::Made(spec)) => {
            let names = KeyAlgorithm::ALL.map(KeyAlgorithm::name);
            let algorithm = value.parse();
            spec.sct_algorithm = algorithm.map_err(|_| key.refuse(value, nearest(value, names)))?;
        }
        (ChainSetting::Names, ArmChain::Made(spec)) => {
            const MOST: u8 = ChainSpec::MAX_NAMES;
            let number = value
                .parse()
                .ok()
                .filter(|number| (1..=MOST).contains(number));
            spec.names = number.ok_or_else(|| key.refuse(value, format!("use 1 to {MOST}")))?;
        }
        (ChainSetting::LeafWithout, ArmChain::Made(spec)) => {
            let names = LeafExtension::ALL.map(LeafExtension::name);
            let mut left = Vec::new();
            for word in value.split('+') {
                let extension = word.parse();
                let extension = extension.map_err(|_| key.refuse(value, nearest(word, names)))?;
                if left.contains(&extension) {
                    return Err(key.refuse(value, format!("name {extension} once")));
                }
                left.push(extension);
            }
            left.sort_unstable();
            spec.leaf_without = left;
        }
        (ChainSetting::Root, ArmChain::Made(spec)) => {
            spec.root = parse_root(key, value)?;
        }
        (ChainSetting::Padding, ArmChain::Made(spec)) => {
            spec.padding = match value {
                "end-entity" => PaddedCertificate::EndEntity,
                "last" => PaddedCertificate::Last,
                _ => return Err(key.refuse(value, nearest(value, ["end-entity", "last"]))),
            };
        }
    }
    Ok(())
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

/// The key that a segment says.
fn key_of(segment: &str) -> Option<&str> {
    segment.split_once('=').map(|(name, _)| name)
}

fn looks_like_key(name: &str) -> bool {
    !name.is_empty() && name.chars().all(|c| c.is_ascii_alphabetic() || c == '_')
}

fn parse_chain(text: &str) -> Result<ArmChain, ArmProblem> {
    if let Some(address) = text.strip_prefix("https://") {
        let host = address.split('/').next().unwrap_or(address);
        let port = if host.contains(':') { "" } else { ":443" };
        return Err(ArmProblem::UnknownChain {
            chain: text.into(),
            hint: format!("for a server, write \"{host}{port}\""),
        });
    }
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
    if is_path(text) || is_host(text) {
        return Ok(ArmChain::Pem(PemFiles::new(text)));
    }
    if is_host(&format!("{text}:443")) {
        return Err(ArmProblem::UnknownChain {
            chain: text.into(),
            hint: format!("for a server, write \"{text}:443\"; for a file, \"./{text}\""),
        });
    }
    if let Some((name, _)) = text.rsplit_once(':')
        && !is_path(name)
        && is_host(&format!("{name}:443"))
    {
        return Err(ArmProblem::UnknownChain {
            chain: text.into(),
            hint: format!("a server's port is a number from 1 to 65535, as in \"{name}:443\""),
        });
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

/// How names of files with certificates end; those that are no PEM are refused by what they are.
const FILES: [&str; 9] = [
    ".pem", ".crt", ".cer", ".der", ".p12", ".pfx", ".p7b", ".p7c", ".jks",
];

fn is_path(chain: &str) -> bool {
    chain.contains('/') || FILES.iter().any(|end| chain.ends_with(end))
}

/// Whether it is a server's name and port, and no file's name and size.
fn is_host(chain: &str) -> bool {
    let name = chain.rsplit_once(':').map(|(name, _)| name);
    Host::parse(chain).is_some() && !name.is_some_and(is_path)
}

/// What algorithms were called before they were standards, and how those names begin.
const EARLIER_NAMES: [(&str, KeyAlgorithm); 7] = [
    ("dilithium2", KeyAlgorithm::MlDsa44),
    ("dilithium3", KeyAlgorithm::MlDsa65),
    ("dilithium5", KeyAlgorithm::MlDsa87),
    ("dilithium", KeyAlgorithm::MlDsa44),
    ("falcon1024", KeyAlgorithm::FnDsa1024),
    ("falcon", KeyAlgorithm::FnDsa512),
    ("sphincs", KeyAlgorithm::SlhDsa(SlhDsa::Sha2_128s)),
];

fn parse_algorithm(text: &str) -> Result<KeyAlgorithm, ArmProblem> {
    text.parse().map_err(|_| {
        let lower = text.to_ascii_lowercase();
        let mut earlier = EARLIER_NAMES.iter();
        let earlier = earlier.find(|(name, _)| lower.starts_with(name));
        // The first one that begins so is the usual one: ecdsa-p256 of ecdsa.
        let mut all = KeyAlgorithm::ALL.into_iter();
        let begins = || all.find(|key| !lower.is_empty() && key.name().starts_with(&lower));
        let meant = earlier.map(|(_, key)| *key).or_else(begins);
        ArmProblem::UnknownChain {
            chain: text.to_owned(),
            hint: match meant {
                Some(key) => format!("did you mean \"{key}\"?"),
                None => nearest(text, KeyAlgorithm::ALL.map(KeyAlgorithm::name)),
            },
        }
    })
}

/// A whole number up to `most`.
fn parse_number(key: Setting, value: &str, most: u8) -> Result<u8, ArmProblem> {
    let number = value.parse().ok().filter(|number| *number <= most);
    number.ok_or_else(|| key.refuse(value, format!("use 0 to {most}")))
}

fn parse_record_size(value: &str) -> Result<RecordSize, ArmProblem> {
    const MAX: u16 = MAX_PLAINTEXT as u16;
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

fn parse_share(key: Setting, value: &str) -> Result<Probability, ArmProblem> {
    let share = value.parse();
    share.map_err(|_| key.refuse(value, "write a share from 0% to 100%"))
}

fn parse_root(key: Setting, value: &str) -> Result<RootDelivery, ArmProblem> {
    match value {
        "sent" => Ok(RootDelivery::Sent),
        "omitted" => Ok(RootDelivery::Omitted),
        _ => Err(key.refuse(value, nearest(value, ["sent", "omitted"]))),
    }
}

fn parse_stack(key: Setting, value: &str) -> Result<StackName, ArmProblem> {
    let names = StackName::ALL.map(StackName::name);
    value
        .parse()
        .map_err(|_| key.refuse(value, nearest(value, names)))
}

fn parse_path(key: Setting, value: &str) -> Result<PathBuf, ArmProblem> {
    if value.is_empty() {
        return Err(key.refuse(value, "name a PEM file"));
    }
    Ok(value.into())
}
