//! The searches of `lastbyte run`: rounds, until each edge is known.

use std::ffi::OsString;
use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::sync::atomic::AtomicBool;

use lastbyte_link::counted;
use lastbyte_pki::Store;

use super::{Run, Work, arms};
use crate::compare::prepare_in;
use crate::engine::Carrier;
use crate::progress::Bar;
use crate::{Failure, print, screen};
use lastbyte::lab::{Engine, Shard};
use lastbyte::report;
use lastbyte::results::{Action, Dataset, Folder, FolderError, Manifest, Start};
use lastbyte::search::{Searched, round_folder};
use lastbyte::study::{Search, Study};

/// What searches measure with.
pub(super) struct Searching<'a> {
    pub(super) run: &'a Run,
    pub(super) carrier: &'a Carrier,
    pub(super) arguments: &'a [OsString],
    pub(super) interrupt: &'a AtomicBool,
}

impl Searching<'_> {
    /// Goes on with each search until nothing is left open.
    pub(super) fn search_all(
        &self,
        study: &Study,
        folder: &Folder,
    ) -> Result<Vec<Searched>, Failure> {
        let searches = study.searches.iter();
        searches.map(|search| self.search(search, folder)).collect()
    }

    fn search(&self, search: &Search, folder: &Folder) -> Result<Searched, Failure> {
        let mut searched = Searched::new(search);
        // Its chains are of no use to anybody else.
        let chains = round_folder(folder.path(), search, 0).with_file_name(".chains");
        let engine = self.carrier.set_up_with(
            self.arguments,
            self.run.shortcuts,
            &Store::open(&chains),
            Some(&chains),
        )?;
        while let Some(round) = searched.next() {
            let path = round_folder(folder.path(), search, searched.rounds);
            self.round(engine.as_ref(), &chains, &round, &path, folder)?;
            if !searched.add(&Dataset::open(&path)?)? {
                let (round, id) = (searched.rounds - 1, &search.id);
                return Err(Failure::Run(format!(
                    "search {id:?}: round {round} has measured nothing new: remove {path:?}, and go on with --resume"
                )));
            }
        }
        Ok(searched)
    }

    /// Measures a round, unless it is complete.
    fn round(
        &self,
        engine: &dyn Engine,
        chains: &Path,
        round: &Study,
        path: &Path,
        whole: &Folder,
    ) -> Result<(), Failure> {
        let size = engine.block_size(round);
        let manifest = Manifest::new(round, size, engine.environment().clone());
        let folder = Folder::take(path, round, manifest, Start::Resume)?;
        if folder.is_complete() {
            return Ok(());
        }
        let bar = Bar::new();
        let arms = prepare_in(&Store::open(chains), arms(round), &bar);
        bar.finish();
        let work = Work {
            study: round,
            engine,
            arms: &arms?,
            shard: Shard::WHOLE,
            interrupt: self.interrupt,
            // Its rounds are of chains that nobody has.
            inspection: None,
        };
        let blocks: Vec<_> = round.blocks(size).collect();
        self.run.measure(&work, &blocks, &folder, whole)?;
        folder
            .merge(round)
            .map_err(|error| self.run.stopped(whole, Shard::WHOLE, error))?;
        fs::remove_dir_all(chains)
            .map_err(|error| FolderError::io(Action::Remove, chains)(error).into())
    }
}

/// Whether the engine can do what the searches of a study ask for.
pub(super) fn check(engine: &dyn Engine, study: &Study) -> Result<(), Failure> {
    for search in &study.searches {
        let asked = Study::single(&search.id, search.experiment.clone());
        engine.check(&asked).map_err(Failure::Usage)?;
        engine.equip(&asked)?;
    }
    Ok(())
}

/// What would be searched. Nobody knows how many edges there are.
pub(super) fn plan(study: &Study) -> String {
    let mut text = String::new();
    for search in &study.searches {
        let experiment = &search.experiment;
        let sizes: usize = experiment
            .arms
            .iter()
            .map(|arm| search.first_sizes(arm).len())
            .sum();
        // Writing to a String can't fail.
        let _ = writeln!(
            text,
            "search {}: {} of {} in each of {}, and what lies between those that differ",
            search.id,
            counted(sizes, "size"),
            counted(experiment.arms.len(), "arm"),
            counted(experiment.cells.len(), "cell"),
        );
    }
    text
}

/// Prints what was found, and keeps its documents.
pub(super) fn report(searched: &[Searched], folder: &Folder) -> Result<(), Failure> {
    for searched in searched {
        folder.keep_search(&searched.search.id, &report::search_json(searched))?;
        print(&format!("\n{}", report::search_table(searched, screen())))?;
    }
    Ok(())
}
