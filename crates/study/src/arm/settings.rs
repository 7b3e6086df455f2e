//! What somebody says of an arm, as it was written.

use std::fmt;
use std::str::FromStr;

use lastbyte_sizes::{ChainSpec, Group, Keys};

use super::key::{Key, chain_as_written};
use super::{ArmProblem, bare, chain_in_usual_letters, check_visible};
use crate::{Arm, ArmChain};

/// A chain, and keys with their values: what follows the group of an arm, in its order and its words. Or keys alone.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Settings {
    /// With its size; empty where there are keys alone.
    pub(super) chain: String,
    pub(super) keys: Vec<(Key, String)>,
}

impl Settings {
    /// What there is to say of a chain.
    pub(super) fn of(group: Group, chain: &ArmChain) -> Result<Settings, ArmProblem> {
        let [has, usual] = [chain.clone(), bare(chain)].map(|chain| Arm::bare(group, chain));
        let keys = Key::all().filter(|key| key.is_of_chain());
        let keys = keys.filter(|key| key.get(&has) != key.get(&usual));
        let settings = Settings {
            chain: chain_as_written(chain),
            keys: keys.filter_map(|key| Some((key, key.get(&has)?))).collect(),
        };
        check_segments(&settings.chain, 0)?;
        for (_, value) in &settings.keys {
            check_segments(value, 1)?;
        }
        Ok(settings)
    }

    /// Keys with their values.
    ///
    /// # Errors
    ///
    /// [`ArmProblem`] where there is no such key, or one stands twice.
    pub fn of_keys(pairs: &[(&str, &str)]) -> Result<Settings, ArmProblem> {
        let mut settings = Settings::default();
        for (key, value) in pairs {
            check_segments(value, 1)?;
            settings.add(Key::parse(key)?, value)?;
        }
        Ok(settings)
    }

    /// The keys of a text such as `delivery=elide/client=stale`, in front of which there is no chain.
    ///
    /// # Errors
    ///
    /// Those of keys, or the text in front of them.
    pub fn keys_of(text: &str) -> Result<Settings, NoKeys> {
        let settings: Settings = match text {
            "" => Settings::default(),
            _ => text.parse()?,
        };
        match settings.chain.split('/').find(|word| !word.is_empty()) {
            Some(word) => Err(NoKeys::Word(word.to_owned())),
            None => Ok(settings),
        }
    }

    /// Each key with its value.
    pub fn pairs(&self) -> impl Iterator<Item = (&'static str, &str)> {
        let keys = self.keys.iter();
        keys.map(|(key, value)| (key.name(), value.as_str()))
    }

    /// Whether nothing is said.
    pub fn is_empty(&self) -> bool {
        self.chain.is_empty() && self.keys.is_empty()
    }

    /// Whether this key is said.
    pub fn says(&self, key: &str) -> bool {
        self.keys.iter().any(|(settings, _)| settings.name() == key)
    }

    /// The same without some keys.
    #[must_use]
    pub fn without(mut self, keys: &[&str]) -> Settings {
        self.keys.retain(|(key, _)| !keys.contains(&key.name()));
        self
    }

    /// What it says of some keys, and what of the others.
    pub fn parted(&self, keys: &[&str]) -> (Settings, Settings) {
        let these = self.keys.iter().map(|(key, _)| key.name());
        let others: Vec<_> = these.filter(|key| !keys.contains(key)).collect();
        (self.clone().without(&others), self.clone().without(keys))
    }

    fn add(&mut self, key: Key, value: &str) -> Result<(), ArmProblem> {
        if self.says(key.name()) {
            return Err(ArmProblem::Twice(key.name()));
        }
        self.keys.push((key, value.to_owned()));
        Ok(())
    }

    /// How a chain that is made begins.
    pub(super) fn chain_of(spec: &ChainSpec) -> String {
        match spec.certificate_bytes {
            Some(bytes) => format!("{}:{bytes}B", Keys::from(spec)),
            None => Keys::from(spec).to_string(),
        }
    }
}

impl FromStr for Settings {
    type Err = ArmProblem;

    /// Parts the chain from the keys after it. A segment that does not begin a key belongs to what
    /// stands before it, since both chains and values can be paths.
    fn from_str(text: &str) -> Result<Settings, ArmProblem> {
        let mut settings = Settings::default();
        let mut chain: Option<String> = None;
        for segment in text.split('/') {
            let key = segment.split_once('=');
            if let Some((name, value)) = key.filter(|(name, _)| looks_like_key(name)) {
                settings.add(Key::parse(name)?, value)?;
                continue;
            }
            let last = settings.keys.last_mut().map(|(_, value)| value);
            match last.or(chain.as_mut()) {
                Some(path) => {
                    path.push('/');
                    path.push_str(segment);
                }
                None => chain = Some(segment.to_owned()),
            }
        }
        settings.chain = chain_in_usual_letters(&chain.unwrap_or_default());
        Ok(settings)
    }
}

/// Whether it is read as it is written: from this segment on, none looks like a key.
fn check_segments(text: &str, first: usize) -> Result<(), ArmProblem> {
    check_visible(text)?;
    let names = text
        .split('/')
        .skip(first)
        .filter_map(|segment| segment.split_once('='));
    match names
        .map(|(name, _)| name)
        .find(|name| looks_like_key(name))
    {
        None => Ok(()),
        Some(key) => Err(ArmProblem::ReadAsKey {
            path: text.to_owned(),
            key: key.to_owned(),
        }),
    }
}

fn looks_like_key(name: &str) -> bool {
    !name.is_empty() && name.chars().all(|c| c.is_ascii_alphabetic() || c == '_')
}

impl fmt::Display for Settings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.chain)?;
        let mut between = match self.chain.as_str() {
            "" => "",
            _ => "/",
        };
        for (key, value) in &self.keys {
            write!(f, "{between}{}={value}", key.name())?;
            between = "/";
        }
        Ok(())
    }
}

/// A text is not keys alone.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NoKeys {
    /// Something stands in front of them.
    #[error("{0:?} is no key with a value")]
    Word(String),
    /// They are not those of arms.
    #[error(transparent)]
    Keys(#[from] ArmProblem),
}
