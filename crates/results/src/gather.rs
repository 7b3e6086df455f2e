//! Shards of a run that other machines have measured, gathered in one folder.

use std::collections::{BTreeMap, HashMap};
use std::ffi::OsString;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use super::folder::{
    Action, FolderError, Manifest, Start, part_name, part_names, part_of, rows_path,
};
use super::part::read_header;
use super::{Dataset, Environment, Folder, KERNEL_SOURCE, PartError, command_of, read_part};
use lastbyte_study::{BlockId, Study};

/// What was gathered.
#[derive(Debug)]
pub struct Gathered {
    /// Where it is.
    pub folder: Folder,
    /// The study that all shards measure.
    pub study: Study,
    /// Blocks that are there now.
    pub blocks: usize,
    /// What cells still need, in the order of the study, and no shard has: all blocks of a stage that has begun.
    pub missing: Vec<BlockId>,
    /// Parts that can't be read, which count as missing.
    pub damaged: Vec<PartError>,
}

/// Shards do not fit together.
#[derive(Debug, thiserror::Error)]
pub enum GatherError {
    /// No shard was named.
    #[error("nothing to gather: name the folders of the shards, as in --gather shard-1 shard-2")]
    NoShards,
    /// A folder can't be read, or the new one can't be written.
    #[error(transparent)]
    Folder(#[from] FolderError),
    /// It is a whole run, not a shard of one.
    #[error("{0:?} is a run that has come to its end: there is nothing to gather, report on it")]
    Complete(PathBuf),
    /// One was measured in another way than the first.
    #[error("{shard:?} does not fit {first:?}: {what}")]
    Other {
        /// The first shard.
        first: PathBuf,
        /// The one that does not fit it.
        shard: PathBuf,
        /// What tells them apart, with the hint.
        what: String,
    },
    /// One tells of other numbers of blocks or connections than its study has.
    #[error("the manifest of {shard:?} tells of {what}: measure that shard again, or leave it out")]
    Miscounted {
        /// The shard.
        shard: PathBuf,
        /// How many of what, and how many there are.
        what: String,
    },
    /// Two have the same connections, with other rows.
    #[error(
        "{0:?} and {1:?} are the same connections with other rows: keep the part that you trust"
    )]
    Twice(PathBuf, PathBuf),
}

/// Where the chain of each arm was first seen.
#[derive(Default)]
struct Chains(BTreeMap<(usize, usize), (String, PathBuf)>);

/// Gathers the finished blocks of `shards` in a new folder at `path`. Their files are linked where that can be done, else
/// copied: shards stay as they are. In memory is a name for each part, and one part at a time. The run's command line is
/// `command`, that of no shard.
///
/// # Errors
///
/// When a shard can't be read, contradicts itself, or measures something else, or in another way: another study, another
/// version, kernel or chain; when two have other rows of the same connections; when `path` can't be written, or holds anything.
pub fn gather(
    shards: &[PathBuf],
    path: &Path,
    command: &[OsString],
) -> Result<Gathered, GatherError> {
    let [first, ..] = shards else {
        return Err(GatherError::NoShards);
    };
    let of = Dataset::open(first)?;
    for shard in shards {
        check(shard, &of)?;
    }
    let was_there = path.exists();
    let mut manifest = of.manifest.clone();
    manifest.environment.command = command_of(command);
    // Its files are beside the first one's study.
    let folder = Folder::take(path, &of.study, manifest, Start::Afresh)?;
    let gathered = gather_in(folder, shards, of);
    if gathered.is_err() {
        // What does not fit together is no run, and nothing to go on with.
        remove(path, was_there).map_err(FolderError::io(Action::Remove, path))?;
    }
    gathered
}

/// Whether a shard has the study that its manifest tells of, and was measured as the first one was.
fn check(path: &Path, first: &Dataset) -> Result<(), GatherError> {
    let shard = Dataset::open(path)?;
    if rows_path(path).exists() {
        return Err(GatherError::Complete(path.to_owned()));
    }
    if let Some(what) = difference(&first.manifest, &shard.manifest) {
        return Err(GatherError::Other {
            first: first.path().to_owned(),
            shard: path.to_owned(),
            what,
        });
    }
    match shard.manifest.miscounted(&shard.study) {
        Some(what) => Err(GatherError::Miscounted {
            shard: path.to_owned(),
            what,
        }),
        None => Ok(()),
    }
}

/// Removes what was begun, and the folder unless it was there before.
fn remove(path: &Path, was_there: bool) -> io::Result<()> {
    if !was_there {
        return fs::remove_dir_all(path);
    }
    for entry in fs::read_dir(path)? {
        let path = entry?.path();
        if path.is_dir() {
            fs::remove_dir_all(path)?
        } else {
            fs::remove_file(path)?
        }
    }
    Ok(())
}

fn gather_in(folder: Folder, shards: &[PathBuf], of: Dataset) -> Result<Gathered, GatherError> {
    let (blocks, damaged) = Gathering::of(shards)?.gather(&folder, &of)?;
    Ok(Gathered {
        missing: folder.missing(&of.study),
        folder,
        study: of.study,
        blocks,
        damaged,
    })
}

/// Which shards have a part, by its name.
struct Gathering<'a> {
    shards: &'a [PathBuf],
    parts: HashMap<String, Vec<u32>>,
}

impl Gathering<'_> {
    /// Each folder is listed once: to ask each of a thousand shards for each part takes longer than to read them.
    fn of(shards: &[PathBuf]) -> Result<Gathering<'_>, FolderError> {
        let mut parts: HashMap<String, Vec<u32>> = HashMap::new();
        for (number, shard) in (0..).zip(shards) {
            for name in part_names(shard)? {
                parts.entry(name).or_default().push(number);
            }
        }
        Ok(Gathering { shards, parts })
    }

    /// Puts the parts in `folder`, and tells how many there are, and which can't be read.
    fn gather(
        mut self,
        folder: &Folder,
        of: &Dataset,
    ) -> Result<(usize, Vec<PartError>), GatherError> {
        let (mut blocks, mut damaged) = (0, Vec::new());
        let mut chains = Chains::default();
        for id in of.study.blocks(of.manifest.block_size) {
            let holders = self.parts.remove(&part_name(&of.study, id));
            let holders = holders.unwrap_or_default().into_iter();
            let mut kept: Option<PathBuf> = None;
            for shard in holders.filter_map(|number| self.shards.get(number as usize)) {
                let part = part_of(shard, &of.study, id);
                // What is cut short or damaged is known by its seal.
                let header = match read_header(&part) {
                    Ok(header) => header,
                    Err(error) => match FolderError::from(error) {
                        FolderError::Part(error) => {
                            damaged.push(error);
                            continue;
                        }
                        error => return Err(error.into()),
                    },
                };
                let what = (folder.difference(&of.study, id, &header))
                    .or_else(|| foreign(&of.manifest.environment, &header.environment));
                if let Some(what) = what {
                    return Err(GatherError::Other {
                        first: of.path().to_owned(),
                        shard: part,
                        what,
                    });
                }
                chains.check(id, &header.chain_sha256, &part)?;
                if let Some(kept) = &kept {
                    let rows = |part: &Path| read_part(part).map(|part| part.rows);
                    if rows(kept).map_err(FolderError::from)?
                        != rows(&part).map_err(FolderError::from)?
                    {
                        return Err(GatherError::Twice(kept.clone(), part));
                    }
                    continue;
                }
                // Before the part, with which a block counts as finished.
                folder.adopt_loads(&of.study, id, header.first, shard)?;
                folder.adopt(&of.study, id, &part)?;
                blocks += 1;
                kept = Some(part);
            }
        }
        Ok((blocks, damaged))
    }
}

/// What tells a shard from the first, if anything does.
fn difference(first: &Manifest, shard: &Manifest) -> Option<String> {
    if first.study_sha256 != shard.study_sha256 {
        return Some(format!(
            "it measures another file of the study {:?}: gather shards of one",
            shard.study
        ));
    }
    if first.study != shard.study {
        return Some(format!(
            "its study is called {:?}, not {:?}: gather shards of one",
            shard.study, first.study
        ));
    }
    let what = first.difference(shard).map(|what| format!("its {what}"));
    let what = what.or_else(|| foreign(&first.environment, &shard.environment));
    let program = || {
        (first.program_sha256 != shard.program_sha256).then(|| {
            "it was measured by another build of lastbyte, which draws other random numbers: measure all shards with \
             one file of the program"
                .to_owned()
        })
    };
    what.or_else(program)
}

/// What else measured there than here, if that changes rows. Machines may be others.
fn foreign(first: &Environment, other: &Environment) -> Option<String> {
    if first.kernel != other.kernel {
        return Some(format!(
            "it was measured with {:?}, not {:?}: measure all shards with one kernel",
            other.kernel, first.kernel
        ));
    }
    let names = first.versions.keys().chain(other.versions.keys());
    let version = |of: &Environment, name: &String| {
        of.versions
            .get(name)
            .cloned()
            .map_or_else(|| "none".to_owned(), |version| format!("{version:?}"))
    };
    for name in names.filter(|name| *name != KERNEL_SOURCE) {
        let (here, there) = (version(first, name), version(other, name));
        if here != there {
            return Some(format!(
                "its {name:?} was {there}, not {here}: measure all shards with one version"
            ));
        }
    }
    (first.sysctls != other.sysctls).then(|| {
        "its kernel had other settings (sysctls): measure all shards with the same".to_owned()
    })
}

impl Chains {
    /// An arm has one chain in all blocks.
    fn check(&mut self, id: BlockId, digest: &str, part: &Path) -> Result<(), GatherError> {
        let BlockId { measure, arm, .. } = id;
        let (known, first) = (self.0)
            .entry((measure, arm))
            .or_insert_with(|| (digest.to_owned(), part.to_owned()));
        if known == digest {
            return Ok(());
        }
        Err(GatherError::Other {
            first: first.clone(),
            shard: part.to_owned(),
            what: "its server had another chain: measure all shards with one folder of them (--chains DIR)".to_owned(),
        })
    }
}

#[cfg(test)]
mod tests;
