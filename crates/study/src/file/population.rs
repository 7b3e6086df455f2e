//! `[population]`: what connections draw.

use std::num::NonZero;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use lastbyte_link::{Probability, Seed};
use lastbyte_sizes::Resumption;
use sha2::{Digest, Sha256};

use super::keys::{self, names};
use super::table::{Field, Source, Table};
use super::{StudyError, StudyProblem};
use crate::population::number;
use crate::{
    ByClass, Draw, Joint, Listed, NamedFile, Parameter, Population,
    PopulationDistribution as Distribution, Shape, Shares, StudyFolder, Traffic, Weighted,
};

/// The header of what connections draw.
pub(super) const HEADER: &str = "[population]";

/// The files that are read besides the study.
pub(super) struct Files<'a> {
    pub(super) folder: &'a StudyFolder,
    /// Whether it is a file that is read.
    pub(super) within: Within,
    pub(super) kept: Vec<NamedFile>,
}

/// What is being read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Within {
    Study,
    Profile,
}

impl Files<'_> {
    /// A file that is named so. What results have kept of it goes before.
    fn read(&mut self, field: &Field) -> Result<(PathBuf, Arc<[u8]>), StudyError> {
        if self.within == Within::Profile {
            return Err(field.error(StudyProblem::Value(
                "a profile can't name another file: put its columns into the profile".to_owned(),
            )));
        }
        let named = field.text()?;
        let path = self.folder.path.join(named);
        let kept = self.folder.read(named).map_err(|error| {
            field.error(StudyProblem::Value(format!("can't read {path:?}: {error}")))
        })?;
        let content = kept.content.clone();
        self.kept.push(kept);
        Ok((path, content))
    }
}

/// SHA-256 of files, in hex, if there are any.
pub(super) fn digest<'a>(files: impl IntoIterator<Item = &'a NamedFile>) -> Option<String> {
    let mut files = files.into_iter().peekable();
    files.peek()?;
    let add = |digest: Sha256, file: &NamedFile| digest.chain_update(&file.content);
    Some(hex::encode(files.fold(Sha256::new(), add).finalize()))
}

impl Population {
    /// That of a file which has one: a study, or a profile as `lastbyte zeek` writes it. What else is in it is no matter.
    ///
    /// # Errors
    ///
    /// When it can't be read, has none, or one that can't be drawn from: one line with the file, the line and the hint.
    pub fn load(path: &Path) -> Result<Population, StudyError> {
        let text = super::text(path)?;
        let source = Source { path, text: &text };
        let document = source.parse()?;
        let top = Table::of_any(source, document.get_ref());
        let read = population(&top, &super::folder(&top, path)?)?;
        read.map_or_else(|| Err(top.missing("population", HEADER)), Read::whole)
    }

    /// The share of connections over QUIC, where a file has one beside its population, as a profile does that `lastbyte zeek` writes.
    ///
    /// # Errors
    ///
    /// When the file can't be read, or the share is none.
    pub fn quic_share(path: &Path) -> Result<Option<Probability>, StudyError> {
        const PROFILE: &str = "profile";
        let text = super::text(path)?;
        let source = Source { path, text: &text };
        let document = source.parse()?;
        let entries = document.get_ref();
        let Some(profile) = entries
            .get(PROFILE)
            .and_then(|found| found.get_ref().as_table())
        else {
            return Ok(None);
        };
        // What else is in it is no matter.
        let known: Vec<&str> = profile.keys().map(|key| &**key.get_ref()).collect();
        let table = Table::new(source, format!("[{PROFILE}]"), 0..0, profile, &known)?;
        table.read("quic_share", Field::parse)
    }

    /// Reads what stands in `[population]`, without its header, from a file at `path`, or as if from there.
    ///
    /// # Errors
    ///
    /// When it can't be drawn from: one line with the file, the line and the hint.
    pub fn parse(text: &str, path: &Path) -> Result<Population, StudyError> {
        let text = format!("{HEADER}\n{text}");
        let source = Source { path, text: &text };
        let document = source.parse()?;
        let top = Table::new(
            source,
            String::new(),
            0..0,
            document.get_ref(),
            &["population"],
        )?;
        let folder = StudyFolder::of(path);
        let read = population(&top, &folder)?;
        read.map_or_else(|| Err(top.missing("population", HEADER)), Read::whole)
    }
}

/// What connections draw, as it is written.
pub(super) struct Read {
    /// What the table says itself; it may be nothing, where cells have traffic.
    pub(super) own: Population,
    /// What says the rest.
    pub(super) traffic: Option<Traffic>,
    /// What to say if nothing is drawn.
    pub(super) nothing: StudyError,
}

impl Read {
    /// Whether connections draw nothing, as long as no cell says more.
    pub(super) fn is_nothing(&self) -> bool {
        self.traffic.is_none() && self.own.draws_nothing()
    }

    /// All of it, as long as no cell says more.
    fn whole(self) -> Result<Population, StudyError> {
        match self.traffic {
            Some(traffic) => Ok(traffic.under(self.own)),
            None if self.own.draws_nothing() => Err(self.nothing),
            None => Ok(self.own),
        }
    }
}

/// Reads what connections draw; `None` if a study has no population.
pub(super) fn population(top: &Table, folder: &StudyFolder) -> Result<Option<Read>, StudyError> {
    let Some(field) = top.get("population") else {
        return Ok(None);
    };
    let table = field.table(HEADER.to_owned(), &keys())?;
    let mut files = Files {
        folder,
        within: Within::Study,
        kept: Vec::new(),
    };
    let mut population = Population::empty(Seed(1));
    if let Some(profile) = table.get("profile") {
        let (path, content) = files.read(&profile)?;
        let text = String::from_utf8(content.to_vec()).map_err(|_| {
            profile.error(StudyProblem::Value(format!(
                "{path:?} is no UTF-8: it is no profile"
            )))
        })?;
        let source = Source {
            path: &path,
            text: &text,
        };
        let document = source.parse()?;
        let known = ["profile", "population"];
        let top = Table::new(source, String::new(), 0..0, document.get_ref(), &known)?;
        let within = top
            .require("population", HEADER)?
            .table(HEADER.to_owned(), &keys())?;
        files.within = Within::Profile;
        set(&mut population, &within, &mut files)?;
        files.within = Within::Study;
    }
    set(&mut population, &table, &mut files)?;
    check(&population, &field)?;
    // What was said when it was written holds for files that stand in it now.
    let told = table.read("digest", Field::text)?;
    population.digest = told.map(str::to_owned).or_else(|| digest(&files.kept));
    population.files = files.kept;
    let traffic = table.read("traffic", |field| {
        field.parse_with(|text| Traffic::read(text, folder))
    })?;
    Ok(Some(Read {
        own: population,
        traffic,
        nothing: field.error(StudyProblem::Value(
            "the population draws nothing: say what, such as rtt = { median = \"30ms\", p95 = \"120ms\" }"
                .to_owned(),
        )),
    }))
}

pub(super) fn keys() -> Vec<&'static str> {
    let parameters = Parameter::drawable().map(Parameter::name);
    parameters.chain(names(keys::POPULATION)).collect()
}

/// Has a population draw what a table says; what the table is silent about stays.
pub(super) fn set(
    population: &mut Population,
    table: &Table,
    files: &mut Files,
) -> Result<(), StudyError> {
    if let Some(drawn) = table.get("drawn") {
        population.listed = Some(listed(&drawn)?);
    }
    let per_user = table.read("connections_per_user", |field| field.whole(1..=u32::MAX))?;
    if let Some(per_user) = per_user.and_then(NonZero::new) {
        population.connections_per_user = per_user;
    }
    if let Some(field) = table.get("joint") {
        let tables = if field.is_list() {
            field.elements()?
        } else {
            vec![field]
        };
        for field in tables {
            population.joint.push(joint(&field, files)?);
        }
    }
    if let Some(share) = table.read("resumes_least", share)? {
        population.resumes_least = Some(share);
    }
    if let Some(share) = table.read("rtt_share", share)? {
        population.rtt_share = Some(share);
    }
    if let Some(field) = table.get("class") {
        population.class = Some(if field.is_text() {
            weighted(&field, vec![field.text()?.into()], None)?
        } else {
            let known = ["values", "weights"];
            let table = field.table("class".to_owned(), &known)?;
            let values = table.require("values", "values = [\"NAME\"]")?;
            let values = values.elements()?;
            let texts = values.iter().map(|one| Ok(one.text()?.into()));
            let texts = texts.collect::<Result<_, StudyError>>()?;
            weighted(&field, texts, table.read("weights", weights)?)?
        });
    }
    for parameter in Parameter::drawable() {
        if let Some(field) = table.get(parameter.name()) {
            let distribution = distribution(&field, parameter)?;
            population
                .parameters
                .retain(|(known, _)| *known != parameter);
            population.parameters.push((parameter, distribution));
        }
    }
    let resumes = table.read("resumes", by_class)?;
    let early_data = table.read("early_data", by_class)?;
    if resumes.is_some() || early_data.is_some() {
        let shares = population.shares.get_or_insert_with(Shares::default);
        shares.resumes = resumes.unwrap_or(shares.resumes.clone());
        shares.early_data = early_data.unwrap_or(shares.early_data.clone());
    }
    Ok(())
}

/// A table, or the file that has it: `"users.csv"`, or with what must be in it, `{ file = "users.csv", sha256 = "..." }`.
fn joint(field: &Field, files: &mut Files) -> Result<Joint, StudyError> {
    let load = |file: &Field, files: &mut Files| {
        let (path, content) = files.read(file)?;
        Joint::load(file.text()?, &content)
            .map_err(|problem| field.error(StudyProblem::Value(format!("{path:?}: {problem}"))))
    };
    if field.is_text() {
        return load(field, files);
    }
    if let Ok(table) = field.table("joint".to_owned(), &["file", "sha256"])
        && let Some(file) = table.get("file")
    {
        let joint = load(&file, files)?;
        let told = table.read("sha256", Field::text)?;
        return match joint.file().filter(|file| told.is_none_or(|told| told == file.sha256)) {
            Some(_) => Ok(joint),
            None => Err(file.error(StudyProblem::Value(
                "the file has changed since the population was drawn from it: measure again, or put it back"
                    .to_owned(),
            ))),
        };
    }
    Joint::new(columns(field)?, None)
        .map_err(|problem| field.error(StudyProblem::Value(problem.to_string())))
}

/// Whether a population says everything once, and something at all.
pub(super) fn check(population: &Population, field: &Field) -> Result<(), StudyError> {
    let problem = |text: String| Err(field.error(StudyProblem::Value(text)));
    if population.listed.is_some() {
        return Ok(());
    }
    let drawn: Vec<Parameter> = population.drawn().collect();
    let mut numbered = drawn.iter().enumerate();
    let twice = numbered.find(|(place, parameter)| drawn[..*place].contains(parameter));
    if let Some((_, parameter)) = twice {
        return problem(format!(
            "{:?} is drawn alone and from a column of the joint table, or from two tables: leave one out",
            parameter.name()
        ));
    }
    for joint in &population.joint {
        if !joint.classes().is_empty() && population.class.is_some() {
            return problem(
                "\"class\" is drawn alone and from a column of the joint table: leave one out"
                    .to_owned(),
            );
        }
        let shares = population.shares.as_ref();
        if joint.resumed_share().is_some()
            && shares.is_some_and(|shares| shares.resumes != ByClass::default())
        {
            return problem(
                "\"resumes\" is a share and a column of the joint table: leave one out".to_owned(),
            );
        }
    }
    let said = population.joint.iter().filter_map(Joint::resumed_share);
    if said.count() > 1 {
        return problem("\"resumes\" is a column of two tables: leave one out".to_owned());
    }
    let classes: Vec<&str> = match &population.class {
        Some(class) => class.values().iter().map(|class| &**class).collect(),
        // Those of the last table that has some.
        None => {
            let tables = population.joint.iter().map(Joint::classes);
            let mut some = tables.filter(|classes| !classes.is_empty());
            some.next_back().unwrap_or_default()
        }
    };
    for share in population
        .shares
        .iter()
        .flat_map(|shares| [&shares.resumes, &shares.early_data])
    {
        let ByClass::Each(named) = share else {
            continue;
        };
        if let Some(missing) = classes
            .iter()
            .find(|class| !named.iter().any(|(name, _)| name == *class))
        {
            return problem(format!(
                "there is no share for class {missing:?}: write {missing} = \"50%\""
            ));
        }
        if let Some((name, _)) = named
            .iter()
            .find(|(name, _)| !classes.contains(&name.as_str()))
        {
            return problem(format!(
                "no connection is of class {name:?}: {}",
                lastbyte_link::nearest(name, classes.iter().copied())
            ));
        }
    }
    Ok(())
}

/// What one parameter is drawn from.
fn distribution(field: &Field, parameter: Parameter) -> Result<Distribution, StudyError> {
    let read = |field: &Field| field.parse_with(|text| parameter.checked(text));
    if !field.is_table() {
        return Ok(Distribution::Values(weighted(
            field,
            vec![read(field)?.into()],
            None,
        )?));
    }
    let table = field.table(field.key().to_owned(), &names(keys::DISTRIBUTION))?;
    let number = |field: &Field| -> Result<f64, StudyError> {
        let text = read(field)?;
        number(parameter, &text).ok_or_else(|| {
            field.error(StudyProblem::Value(format!(
                "{text} is no number to draw between"
            )))
        })
    };
    let shapes = ["values", "uniform", "median", "mean", "percentiles"];
    let said: Vec<_> = shapes.into_iter().filter(|key| table.has(key)).collect();
    let shape = match said[..] {
        ["values"] => {
            let values = table.require("values", "values = []")?;
            let values = values.elements()?;
            let texts = values.iter().map(|one| Ok(read(one)?.into()));
            let texts = texts.collect::<Result<_, StudyError>>()?;
            let weights = table.read("weights", weights)?;
            return Ok(Distribution::Values(weighted(field, texts, weights)?));
        }
        ["uniform"] => {
            let ends = table.require("uniform", "uniform = []")?;
            let numbers = ends
                .elements()?
                .iter()
                .map(number)
                .collect::<Result<Vec<_>, _>>()?;
            match numbers[..] {
                [least, most] if least <= most => Shape::Uniform { least, most },
                _ => {
                    return Err(ends.error(StudyProblem::Value(
                        "\"uniform\" takes the least and the most: uniform = [\"5ms\", \"60ms\"]"
                            .to_owned(),
                    )));
                }
            }
        }
        ["median"] => {
            let median = number(&table.require("median", "median = \"30ms\"")?)?;
            let field = table.require("p95", "p95 = \"120ms\"")?;
            let p95 = number(&field)?;
            if !(median > 0.0 && p95 >= median) {
                return Err(field.error(StudyProblem::Value(
                    "the median must be above zero, and \"p95\" not below it".to_owned(),
                )));
            }
            Shape::LogNormal { median, p95 }
        }
        ["mean"] => Shape::Exponential {
            mean: number(&table.require("mean", "mean = \"30ms\"")?)?,
        },
        ["percentiles"] => percentiles(&table, &number)?,
        _ => {
            return Err(field.error(StudyProblem::Value(format!(
                "{:?} is drawn in one way: values, uniform, median with p95, mean, or percentiles",
                field.key()
            ))));
        }
    };
    let bound = |key| table.read(key, number);
    let bounds = (bound("least")?, bound("most")?);
    Distribution::of_numbers(parameter, shape, bounds)
        .map_err(|problem| field.error(StudyProblem::Value(problem.to_string())))
}

/// `{ p5 = "8ms", p50 = "30ms", p95 = "120ms" }`.
fn percentiles(
    table: &Table,
    number: &impl Fn(&Field) -> Result<f64, StudyError>,
) -> Result<Shape, StudyError> {
    let field = table.require("percentiles", "percentiles = {}")?;
    let mut points = Vec::new();
    for entry in field.named_tables()? {
        let percent = entry.key().trim_start_matches('p').parse::<f64>().ok();
        let percent = percent.filter(|percent| (0.0..=100.0).contains(percent));
        let percent = percent.ok_or_else(|| {
            entry.error(StudyProblem::Value(format!(
                "{:?} is no percentile: write p0 to p100",
                entry.key()
            )))
        })?;
        points.push((percent, number(&entry)?));
    }
    points.sort_by(|(one, _), (other, _)| one.total_cmp(other));
    let falls = points.windows(2).any(|pair| match pair {
        [(left, low), (right, high)] => left == right || low > high,
        _ => false,
    });
    let ends = (
        points.first().map(|(percent, _)| *percent),
        points.last().map(|(percent, _)| *percent),
    );
    if ends != (Some(0.0), Some(100.0)) {
        return Err(field.error(StudyProblem::Value(
            "\"percentiles\" must say where the numbers end: add p0 and p100".to_owned(),
        )));
    }
    if falls {
        Err(field.error(StudyProblem::Value(
            "a higher percentile can't be a lower value, nor be there twice".to_owned(),
        )))
    } else {
        Ok(Shape::Percentiles(points))
    }
}

fn weighted(
    field: &Field,
    values: Vec<Arc<str>>,
    weights: Option<Vec<f64>>,
) -> Result<Weighted, StudyError> {
    Weighted::new(values, weights)
        .map_err(|problem| field.error(StudyProblem::Value(problem.to_string())))
}

fn weights(field: &Field) -> Result<Vec<f64>, StudyError> {
    let weight = |field: &Field| {
        let text = field.number()?;
        let number = text
            .parse::<f64>()
            .ok()
            .filter(|number| number.is_finite() && *number >= 0.0);
        number.ok_or_else(|| {
            field.error(StudyProblem::Value(format!(
                "weight {text} can't be: weights are numbers from 0 on"
            )))
        })
    };
    field.elements()?.iter().map(weight).collect()
}

/// A share, or a table of them by class.
fn by_class(field: &Field) -> Result<ByClass, StudyError> {
    if !field.is_table() {
        return Ok(ByClass::All(share(field)?));
    }
    let classes = field.named_tables()?;
    let each = classes
        .iter()
        .map(|field| Ok((field.key().to_owned(), share(field)?)));
    Ok(ByClass::Each(each.collect::<Result<_, StudyError>>()?))
}

fn share(field: &Field) -> Result<Probability, StudyError> {
    field.parse()
}

/// The columns of a table that stands in the study.
fn columns(field: &Field) -> Result<Vec<(String, Vec<String>)>, StudyError> {
    let mut columns = Vec::new();
    for column in field.named_tables()? {
        let cells = column.elements()?;
        let cells = cells.iter().map(Field::cell).collect::<Result<_, _>>()?;
        columns.push((column.key().to_owned(), cells));
    }
    Ok(columns)
}

/// Draws that are known already.
fn listed(field: &Field) -> Result<Listed, StudyError> {
    let parameters: Vec<Parameter> = Parameter::drawable().collect();
    let known: Vec<&str> = parameters
        .iter()
        .map(|one| one.name())
        .chain(keys::DRAWN.iter().copied())
        .collect();
    let table = field.table("[population.drawn]".to_owned(), &known)?;
    let first = table.require("first", "first = 0")?.whole(0..=u32::MAX)?;
    let users = table.require("user", "user = []")?.elements()?;
    let users = users
        .iter()
        .map(|user| user.whole(0..=u32::MAX))
        .collect::<Result<Vec<u32>, _>>()?;
    let column = |key: &str| -> Result<Option<Vec<String>>, StudyError> {
        let Some(field) = table.get(key) else {
            return Ok(None);
        };
        let cells = field
            .elements()?
            .iter()
            .map(Field::cell)
            .collect::<Result<Vec<_>, _>>()?;
        if cells.len() == users.len() {
            Ok(Some(cells))
        } else {
            Err(field.error(StudyProblem::Value(format!(
                "{key:?} has {} cells, \"user\" has {}",
                cells.len(),
                users.len()
            ))))
        }
    };
    let classes = column("class")?;
    let sessions = column("session")?;
    let mut values: Vec<(Parameter, Vec<String>)> = Vec::new();
    for parameter in parameters {
        if let Some(cells) = column(parameter.name())? {
            for cell in &cells {
                let wrong = |problem| field.error(StudyProblem::Value(problem));
                parameter
                    .checked(cell)
                    .map_err(|problem| wrong(problem.to_string()))?;
            }
            values.push((parameter, cells));
        }
    }
    let mut draws = Vec::with_capacity(users.len());
    for (row, user) in users.into_iter().enumerate() {
        let at = |cells: &Vec<String>| cells.get(row).cloned().unwrap_or_default();
        let session = match &sessions {
            None => None,
            Some(cells) => Some(
                at(cells)
                    .parse::<Resumption>()
                    .map_err(|error| field.error(StudyProblem::Value(error.to_string())))?,
            ),
        };
        let class = classes.as_ref().map(at).filter(|class| !class.is_empty());
        let values = values
            .iter()
            .map(|(parameter, cells)| (*parameter, at(cells).into()));
        draws.push(Draw::of_parts(
            user,
            class.map(Arc::from),
            values.collect(),
            session,
        ));
    }
    Ok(Listed { first, draws })
}
