//! What commands are asked about a chain: an arm, an algorithm, a file or a size; and where the answer is written.

use std::ffi::OsString;
use std::io::Write;
use std::path::{Path, PathBuf};

use clap::ValueEnum;
use lastbyte_link::Bytes;
use lastbyte_pki::{PemFiles, load_pem, stand_in};

use super::draft::Draft;
use super::{Failure, print};
use lastbyte::study::{Arm, ArmChain};

/// The group that a chain is measured with, where the user names none.
const GROUP: &str = "X25519MLKEM768";
/// The key that a chain is signed with of which only the size is known.
const KEY: &str = "ml-dsa-44";

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
        print(&match format {
            Format::Text => (self.text)(),
            Format::Json => (self.document)(),
        })
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

/// An arm, a chain, a PEM file or a size, as an arm.
pub(super) fn arm(text: &str) -> Result<Arm, Failure> {
    let problem = match text.parse::<Arm>() {
        Ok(arm) => return settled(arm),
        Err(problem) => problem,
    };
    let sized = format!("{GROUP}/{KEY}:{text}").parse::<Arm>();
    let chain = format!("{GROUP}/{text}").parse::<Arm>();
    match (chain, sized) {
        (Ok(arm), _) | (_, Ok(arm)) => settled(arm),
        // Of what begins with a group, that tells most.
        _ if text.contains('/') => Err(Failure::usage(problem)),
        (_, Err(problem)) if text.parse::<Bytes>().is_ok() => Err(Failure::usage(problem)),
        _ if text.starts_with(|first: char| first.is_ascii_digit()) => {
            Err(Failure::Usage(format!(
                "{text:?} is no size of a Certificate message: write bytes with their unit, such as 16KB"
            )))
        }
        _ => Err(Failure::Usage(format!(
            "{text:?} is no arm, no chain, no PEM file and no size: write ml-dsa-44, chain.pem or 16KB, or an arm \
             such as {GROUP}/{KEY}"
        ))),
    }
}

/// What is told of a chain that stands in for another one, or of its root that nobody named.
pub(super) fn supposed_of(text: &str, arm: &Arm) -> Option<String> {
    let asked = [text.to_owned(), format!("{GROUP}/{text}")];
    let asked = asked.iter().find_map(|text| text.parse::<Arm>().ok())?;
    match (&asked.chain, &arm.chain) {
        (ArmChain::Pem(_), ArmChain::Made(_)) => Some(format!(
            "{text}, whose private key is not there: {} of its kind and size stands in for it",
            arm.label
        )),
        (
            ArmChain::Pem(PemFiles { ca: None, .. }),
            ArmChain::Pem(PemFiles { ca: Some(root), .. }),
        ) => Some(format!(
            "{text}, which does not end in its root: clients trust the one beside it, {}",
            root.display()
        )),
        _ => None,
    }
}

/// A chain of files without its key can't be shown by a server: one of the same size and kind stands in for it. Where its
/// root is not named and lies beside it, as `lastbyte chain new` writes it, that is named.
fn settled(arm: Arm) -> Result<Arm, Failure> {
    match &arm.chain {
        ArmChain::Pem(files) => match stand_in(files).map_err(Failure::usage)? {
            Some(spec) => {
                let path = files.chain.display().to_string();
                let label = arm.label.replace(&path, &spec.to_string());
                label.parse().map_err(Failure::usage)
            }
            None => match root_beside(files) {
                Some(root) => {
                    let root = root.display().to_string();
                    arm.with("ca", &root).map_err(Failure::Usage)
                }
                None => Ok(arm),
            },
        },
        ArmChain::Made(_) => Ok(arm),
    }
}

/// The root that a chain of files needs, does not have, and that lies beside it.
fn root_beside(files: &PemFiles) -> Option<PathBuf> {
    let root = files.chain.with_file_name("root.pem");
    let named = PemFiles {
        ca: Some(root.clone()),
        ..files.clone()
    };
    let is_needed = files.ca.is_none() && load_pem(files).is_err();
    (is_needed && load_pem(&named).is_ok()).then_some(root)
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
