//! The chain of an arm: an algorithm or several, a file, or a server.

use lastbyte_link::{Bytes, nearest};
use lastbyte_sizes::{ChainSpec, Group, Host, KeyAlgorithm, PemFiles, SlhDsa};

use super::ArmProblem;
use crate::ArmChain;
use crate::value::SizeError;

/// The name of a group in the letters that it has: `x25519mlkem768` is `X25519MLKEM768`.
pub(super) fn group_in_usual_letters(word: &str) -> &str {
    in_letters_of(word, &Group::ALL.map(Group::name))
}

/// A chain with algorithms in the letters that they have: `ML-DSA-44` is `ml-dsa-44`.
pub(super) fn chain_in_usual_letters(text: &str) -> String {
    let (chain, rest) = text.split_at(text.find('/').unwrap_or(text.len()));
    let (keys, size) = chain.split_at(chain.rfind(':').unwrap_or(chain.len()));
    let names = KeyAlgorithm::ALL.map(KeyAlgorithm::name);
    let keys: Vec<&str> = keys
        .split('+')
        .map(|word| in_letters_of(word, &names))
        .collect();
    keys.join("+") + size + rest
}

fn in_letters_of<'a>(word: &'a str, names: &[&'static str]) -> &'a str {
    let name = names.iter().find(|name| name.eq_ignore_ascii_case(word));
    name.copied().unwrap_or(word)
}

pub(super) fn parse_chain(text: &str) -> Result<ArmChain, ArmProblem> {
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

pub(super) fn parse_made(text: &str) -> Result<ChainSpec, ArmProblem> {
    let (algorithms, certificate_bytes) = match text.rsplit_once(':') {
        Some((algorithms, size)) => (
            algorithms,
            Some(parse_size(size).map_err(ArmProblem::Size)?),
        ),
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

pub(super) fn parse_size(text: &str) -> Result<usize, SizeError> {
    if !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(SizeError::NoUnit(text.to_owned()));
    }
    let Bytes(bytes) = text.parse()?;
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
