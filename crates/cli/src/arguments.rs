//! What commands are asked about a chain: an arm, an algorithm, a file or a size; and where the answer is written.

use std::ffi::OsString;
use std::io::Write;
use std::path::Path;

use clap::builder::TypedValueParser;
use clap::{Args, ValueEnum};
use lastbyte_link::{Bytes, is_hidden};
use lastbyte_sizes::Group;

use super::draft::Draft;
use super::one_of::one_of;
use super::{Failure, own, print, print_json};
use lastbyte::study::{Arm, ArmChain, ArmError, ArmProblem, ChainProfile, Study};

/// The group that a chain is measured with, where the user names none.
const GROUP: Group = Group::X25519MlKem768;
/// The key that a chain is signed with of which only the size is known.
const KEY: &str = "ml-dsa-44";

/// What the chains of arms have where these do not say.
#[derive(Clone, Copy, Debug, Default, Args)]
pub(super) struct Chains {
    /// What a chain has that does not say: public, two intermediates and two timestamps by ECDSA logs, as most public sites
    /// have; private, one intermediate and no timestamps, as arms of studies and papers have by themselves
    /// [default: public, for each arm that is named]
    #[arg(long, value_name = "NAME", value_parser = profiles(), hide_short_help = true)]
    chain_profile: Option<ChainProfile>,
}

fn profiles() -> impl TypedValueParser<Value = ChainProfile> {
    one_of(ChainProfile::ALL.map(ChainProfile::name), str::parse)
}

impl Chains {
    /// Those of one kind of site.
    pub(super) fn profiled(profile: ChainProfile) -> Chains {
        Chains {
            chain_profile: Some(profile),
        }
    }

    /// An arm that somebody has named.
    pub(super) fn of(self, arm: &Arm) -> Arm {
        self.chain_profile.unwrap_or_default().of(arm)
    }

    /// An arm that nobody has named: as it is, unless a profile was.
    pub(super) fn of_usual(self, arm: &Arm) -> Arm {
        match self.chain_profile {
            Some(profile) => profile.of(arm),
            None => arm.clone(),
        }
    }
}

/// How an answer is printed.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub(super) enum Format {
    Text,
    Json,
}

/// What is written into a file.
#[derive(Clone, Copy)]
pub(super) enum Content {
    Page,
    Document,
}

/// An answer, each way that it can be told.
pub(super) struct Answer<'a> {
    pub(super) text: &'a dyn Fn() -> String,
    pub(super) page: &'a dyn Fn() -> String,
    pub(super) document: &'a dyn Fn() -> String,
}

impl Answer<'_> {
    /// Writes it into the file that was asked for, and prints it.
    pub(super) fn tell(
        &self,
        file: Option<(Draft<'_>, Content)>,
        format: Format,
    ) -> Result<(), Failure> {
        if let Some((draft, content)) = file {
            let text = match content {
                Content::Page => (self.page)(),
                Content::Document => (self.document)(),
            };
            draft.write(|out| out.write_all(text.as_bytes()))?;
        }
        match format {
            Format::Text => print(&(self.text)()),
            Format::Json => print_json(&(self.document)()),
        }
    }
}

pub(super) fn content(path: &Path) -> Result<Content, Failure> {
    match path.extension().and_then(|extension| extension.to_str()) {
        Some("html") => Ok(Content::Page),
        Some("json") => Ok(Content::Document),
        _ => Err(Failure::Usage(format!(
            "can't write {path:?}: name it .html, for the page, or .json"
        ))),
    }
}

/// An arm, a chain, a PEM file, a server or a size, as an arm. A server is asked for its chain.
pub(super) fn arm(text: &str, chains: Chains) -> Result<Arm, Failure> {
    let arm = chains.of(&parsed(text)?);
    own::fetch([&arm])?;
    Ok(arm)
}

/// Two that are compared. Where the chain of one is the user's own, one that is made for the other has its shape, unless it says
/// another or a profile was named: so their keys alone differ.
pub(super) fn pair(texts: [&str; 2], chains: Chains) -> Result<[Arm; 2], Failure> {
    let [one, other] = [parsed(texts[0])?, parsed(texts[1])?];
    own::fetch([&one, &other])?;
    let pair = match chains.chain_profile {
        None => [
            own::in_shape_of(&other, one.clone())?,
            own::in_shape_of(&one, other)?,
        ],
        Some(_) => [one, other],
    };
    Ok(pair.map(|arm| chains.of(&arm)))
}

/// The same with what it is called in front, if that is said: `today=x25519/ecdsa-p256`.
pub(super) fn named(text: &str) -> Result<Arm, String> {
    let said = text.split_once('=').filter(|(name, _)| !name.contains('/'));
    let Some((name, arm)) = said else {
        return arm_or_chain(text).map_err(|problem| problem.to_string());
    };
    const MOST: usize = Study::LONGEST_NAME;
    let problem = match name.chars().find(|c| is_hidden(*c)) {
        Some(_) => Some("has a character that is not seen: write one that is".to_owned()),
        None if name.trim() != name || name.is_empty() => {
            Some("begins or ends with nothing to see: write NAME=ARM".to_owned())
        }
        None if name.chars().count() > MOST => Some(format!(
            "has more than {MOST} characters: write a shorter one"
        )),
        None => None,
    };
    if let Some(problem) = problem {
        return Err(format!("the name before {arm:?} {problem}"));
    }
    let arm = arm_or_chain(arm).map_err(|problem| problem.to_string())?;
    Ok(Arm {
        name: name.to_owned(),
        ..arm
    })
}

/// An arm, or a chain that is measured with the usual group.
pub(super) fn arm_or_chain(text: &str) -> Result<Arm, ArmError> {
    let of_arm = match text.parse::<Arm>() {
        Ok(arm) => return Ok(arm),
        Err(problem) if is_meant(&problem) => return Err(problem),
        Err(problem) => problem,
    };
    // Without a slash, it is no group and a chain.
    Arm::of_chain(GROUP, text).map_err(|of_chain| {
        if text.contains('/') && !text.starts_with("https://") && !begins_with_chain(text) {
            of_arm
        } else {
            of_chain
        }
    })
}

/// Whether what stands before the first slash is a chain: then the mistake is behind it.
fn begins_with_chain(text: &str) -> bool {
    let chain = text.split('/').next().unwrap_or_default();
    Arm::of_chain(GROUP, chain).is_ok_and(|arm| matches!(arm.chain, ArmChain::Made(_)))
}

/// Whether a text that is no arm is meant as one: it begins with a group, or what comes behind its first slash is a chain that can be
/// made, so that something which is no group stands before that, and not a folder.
fn is_meant(error: &ArmError) -> bool {
    let ArmError { arm: text, problem } = error;
    if !matches!(problem, ArmProblem::Group(_)) {
        return true;
    }
    let chain = text.split_once('/').map(|(_, chain)| chain);
    let arm = chain.and_then(|chain| Arm::of_chain(GROUP, chain).ok());
    !text.starts_with('.') && arm.is_some_and(|arm| matches!(arm.chain, ArmChain::Made(_)))
}

fn parsed(text: &str) -> Result<Arm, Failure> {
    let problem = match text.parse::<Arm>() {
        Ok(arm) => return Ok(arm),
        Err(problem) if is_meant(&problem) => return Err(Failure::usage(problem)),
        Err(problem) => problem,
    };
    let sized = Arm::of_chain(GROUP, &format!("{KEY}:{text}"));
    let chain = Arm::of_chain(GROUP, text);
    match (chain, sized) {
        (Ok(arm), _) | (_, Ok(arm)) => Ok(arm),
        (Err(problem), _) if text.starts_with("https://") || text.starts_with("localhost") => {
            Err(Failure::usage(problem))
        }
        (Err(problem), _) if begins_with_chain(text) => Err(Failure::usage(problem)),
        // Of what begins with a group, that tells most.
        _ if text.contains('/') => Err(Failure::usage(problem)),
        (_, Err(problem)) if text.parse::<Bytes>().is_ok() => Err(Failure::usage(problem)),
        _ if text.starts_with(|first: char| first.is_ascii_digit()) => {
            Err(Failure::Usage(format!(
                "{text:?} is no size of a Certificate message: write bytes with their unit, such as 16KB"
            )))
        }
        _ => Err(Failure::Usage(format!(
            "{text:?} is no arm, no chain, no PEM file and no size: write ml-dsa-44, chain.pem, example.com:443 or 16KB, or \
             an arm such as {GROUP}/{KEY}"
        ))),
    }
}

/// Reads a table that somebody may have of all their users, or of all their servers.
pub(super) fn table(path: &Path) -> Result<Vec<u8>, Failure> {
    /// Tables of some ten million users.
    const MOST: u64 = 1 << 30;
    lastbyte_files::read(path, MOST)
        .map_err(|error| Failure::Usage(format!("can't read \"{}\": {error}", path.display())))
}

/// Makes sure that no arm is there twice, nor a name.
pub(super) fn check_once(arms: &[Arm]) -> Result<(), Failure> {
    for (index, arm) in arms.iter().enumerate() {
        let mut before = arms[..index].iter();
        let is_same = |other: &&Arm| other.name == arm.name || other.label == arm.label;
        let problem = match before.find(is_same) {
            None => continue,
            Some(other) if other.name == arm.name => {
                format!("arm \"{}\" is given twice: name each once", arm.name)
            }
            Some(other) => format!(
                "arm \"{}\" is the same as arm \"{}\": leave one out",
                arm.name, other.name
            ),
        };
        return Err(Failure::Usage(problem));
    }
    Ok(())
}

/// The command as it was given.
pub(super) fn command(arguments: &[OsString]) -> String {
    let words: Vec<_> = arguments
        .iter()
        .skip(1)
        .map(|word| word.to_string_lossy())
        .collect();
    format!("lastbyte {}", words.join(" "))
}
