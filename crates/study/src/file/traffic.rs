//! Files of kinds of traffic: `[population]` as in studies, and who says so.

use std::path::Path;

use lastbyte_link::Seed;

use super::keys::{self, names};
use super::population::{self, Files, HEADER, Within};
use super::table::{Field, Source, Table};
use super::{StudyError, StudyFolder, StudyProblem};
use crate::{Fact, Kind, NamedFile, Parameter, Population};

impl Kind {
    /// Reads a file of a kind of traffic that says where all of it comes from.
    ///
    /// # Errors
    ///
    /// When it can't be drawn from, or a number has no source: one line with the file, the line and the hint.
    pub(crate) fn parse(text: &str, path: &Path) -> Result<Kind, StudyError> {
        let source = Source { path, text };
        let document = source.parse()?;
        let known = names(keys::TRAFFIC);
        let top = Table::new(source, String::new(), 0..0, document.get_ref(), &known)?;
        kind(&top)
    }

    /// Reads one's own, which need not say where it comes from: what else is in the file is no matter.
    ///
    /// # Errors
    ///
    /// When it can't be drawn from: one line with the file, the line and the hint.
    pub(crate) fn of_file(path: &Path, file: NamedFile) -> Result<Kind, StudyError> {
        let text = super::utf8(path, file.content.to_vec())?;
        let source = Source { path, text: &text };
        let document = source.parse()?;
        let top = Table::of_any(source, document.get_ref());
        let mut kind = kind(&top)?;
        kind.population.digest = population::digest([&file]);
        kind.population.files = vec![file];
        Ok(kind)
    }
}

fn kind(top: &Table) -> Result<Kind, StudyError> {
    let field = top.require("population", HEADER)?;
    let table = field.table(HEADER.to_owned(), &population::keys())?;
    let mut files = Files {
        folder: &StudyFolder::HERE,
        within: Within::Profile,
        kept: Vec::new(),
    };
    let mut all = Population::empty(Seed(1));
    population::set(&mut all, &table, &mut files)?;
    population::check(&all, &field)?;
    let work = all.of_work();
    if !work.draws(Parameter::DATA) {
        return Err(field.error(StudyProblem::Value(
            "the traffic does not say how much servers answer: draw data, such as data = { median = \"20KiB\", p95 = \"300KiB\" }"
                .to_owned(),
        )));
    }
    let text = |key| Ok(top.read(key, Field::line)?.map(str::to_owned));
    Ok(Kind {
        what: text("what")?.unwrap_or_default(),
        proof: top.read("mutual", Field::parse)?.unwrap_or_default(),
        facts: facts(top, &table)?,
        population: work,
    })
}

/// What a kind says, where its file has sources: of each key, one.
fn facts(top: &Table, population: &Table) -> Result<Vec<Fact>, StudyError> {
    let Some(field) = top.get("source").filter(Field::is_table) else {
        return Ok(Vec::new());
    };
    let top_keys = top
        .written()
        .into_iter()
        .filter(|(key, _)| *key == "mutual");
    let said: Vec<_> = population.written().into_iter().chain(top_keys).collect();
    let known: Vec<&str> = said.iter().map(|(key, _)| *key).collect();
    let sources = field.table("[source]".to_owned(), &known)?;
    let facts = said.into_iter().map(|(key, value)| {
        let header = format!("[source.{key}]");
        let field = sources
            .get(key)
            .ok_or_else(|| sources.missing(key, "published = \"WHO, YEAR\""))?;
        let table = field.table(header, &names(keys::SOURCE))?;
        let text = |key| Ok::<_, StudyError>(table.read(key, Field::line)?.map(str::to_owned));
        let (published, stated) = (text("published")?, text("stated")?);
        if published.is_none() && stated.is_none() {
            return Err(table.missing("published", "published = \"WHO, YEAR\""));
        }
        Ok(Fact {
            key: key.to_owned(),
            value: value.to_owned(),
            published,
            stated,
        })
    });
    facts.collect()
}
