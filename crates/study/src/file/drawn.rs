//! What a study says of its results: figures, published numbers, claims and its answer.

use super::keys::{self, names};
use super::table::{Field, Table};
use super::{StudyError, StudyProblem, find, key, percentile};
use crate::headline::{TextPiece, text_pieces};
use crate::parameter::Alternative;
use crate::question::cells_named;
use crate::{
    Arm, Bearing, Bounds, Check, Claim, Figure, Filter, Headline, Measure, MessageSize, Metric,
    Parameter, Percentile, Piece, Place, Plot, Published, Quantity, Question, UnknownName,
    check_metric,
};

/// What figures, published numbers and claims refer to.
pub(super) struct References<'a> {
    pub(super) arms: &'a [Arm],
    pub(super) measures: &'a [Measure],
    pub(super) percentiles: &'a [Percentile],
}

impl References<'_> {
    pub(super) fn figures(&self, top: &Table) -> Result<Vec<Figure>, StudyError> {
        const HEADER: &str = "[[figure]]";
        let mut figures: Vec<Figure> = Vec::new();
        for table in tables(top, "figure", HEADER, &names(keys::FIGURE))? {
            let figure = self.figure(&table)?;
            if figures.iter().any(|other| other.id == figure.id) {
                return Err(table.same_name("figure", &figure.id));
            }
            figures.push(figure);
        }
        Ok(figures)
    }

    fn figure(&self, table: &Table) -> Result<Figure, StudyError> {
        let list = |key| table.read(key, |field| field.list(Field::parse::<Parameter>));
        let plot: Plot = table.require("plot", "plot = \"increase\"")?.parse()?;
        for key in Plot::SOME.iter().filter(|key| !plot.takes().contains(key)) {
            if let Some(field) = table.get(key) {
                return Err(field.conflict(plot.written()));
            }
        }
        let measures = self.measures_of(table, "measure")?;
        let arms = table.read("arms", |field| field.list(|arm| self.arm(arm, &measures)))?;
        let drawn: Vec<&str> = arms.iter().flatten().map(String::as_str).collect();
        Ok(Figure {
            id: table.require("id", "id = \"NAME\"")?.name()?.to_owned(),
            title: table.read("title", Field::text)?.map(str::to_owned),
            plot,
            x: table.read("x", Field::parse)?,
            facets: list("facet")?.unwrap_or_default(),
            metric: self.metric(table, &measures, &drawn)?,
            arms: arms.unwrap_or_default(),
            cells: self.cells(table, &measures)?,
            pool: list("pool")?.unwrap_or_default(),
            percentiles: percentiles(table)?.unwrap_or_default(),
            beside: table
                .read("beside", |field| field.list(Field::parse))?
                .unwrap_or_default(),
            measures,
        })
    }

    /// The published numbers, one for each row of a table.
    pub(super) fn published(
        &self,
        top: &Table,
        figures: &[Figure],
    ) -> Result<Vec<Published>, StudyError> {
        const HEADER: &str = "[[published]]";
        let mut published = Vec::new();
        let known = [names(keys::PUBLISHED), names(keys::QUESTION)].concat();
        for table in tables(top, "published", HEADER, &known)? {
            let figure = table.read("figure", |field| {
                find("figure", field, figures, |figure| &figure.id)
            })?;
            let question = self.question(&table)?;
            let usual = Published {
                source: table
                    .require("source", "source = \"Table II\"")?
                    .text()?
                    .to_owned(),
                figure: figure.map(|figure| figure.id.clone()),
                within: table.read("within", number)?.unwrap_or(2.0),
                cause: table.read("cause", Field::text)?.map(str::to_owned),
                values: Vec::new(),
                question,
            };
            match (table.get("values"), table.get("rows")) {
                (Some(_), Some(rows)) => return Err(rows.conflict("\"values\"")),
                (Some(values), None) => {
                    let row = with_values(&usual, &values, &[])?;
                    self.check_one_place(&values, &row.question)?;
                    published.push(row);
                }
                (None, Some(rows)) => {
                    let by = table.require("by", "by = [\"rtt\", \"loss\"]")?;
                    let by: Vec<Parameter> = by.list(Field::parse)?;
                    for row in rows.elements()? {
                        let values = with_values(&usual, &row, &by)?;
                        let question = &values.question;
                        self.check_cells(&row, &question.measures, &question.cells)?;
                        self.check_one_place(&row, question)?;
                        published.push(values);
                    }
                }
                (None, None) => return Err(table.missing("values", "values = [70, 71, 72]")),
            }
        }
        Ok(published)
    }

    pub(super) fn claims(&self, top: &Table) -> Result<Vec<Claim>, StudyError> {
        const HEADER: &str = "[[claim]]";
        let mut claims: Vec<Claim> = Vec::new();
        for table in tables(top, "claim", HEADER, &names(keys::CLAIM))? {
            let claim = Claim {
                id: table.require("id", "id = \"NAME\"")?.name()?.to_owned(),
                text: table
                    .require("text", "text = \"WORDS\"")?
                    .text()?
                    .to_owned(),
                checks: self.checks(&table)?,
                cause: table.read("cause", Field::text)?.map(str::to_owned),
            };
            if claims.iter().any(|other| other.id == claim.id) {
                return Err(table.same_name("claim", &claim.id));
            }
            claims.push(claim);
        }
        Ok(claims)
    }

    fn checks(&self, claim: &Table) -> Result<Vec<Check>, StudyError> {
        const HEADER: &str = "[[claim.check]]";
        let known = [names(keys::CHECK), names(keys::QUESTION)].concat();
        let tables = claim.require("check", HEADER)?.tables(HEADER, &known)?;
        let check = |table: &Table| {
            Ok(Check {
                question: self.question(table)?,
                within: table.require("within", "within = \"0..5\"")?.parse()?,
            })
        };
        tables.iter().map(check).collect()
    }

    /// The sentence that the study answers with; each of its places has its number, and each number a place.
    pub(super) fn answer(&self, top: &Table) -> Result<Option<Headline>, StudyError> {
        let mut places = self.places(top)?;
        let Some(field) = top.get("answer") else {
            return match top.get("number") {
                Some(field) => Err(field.error(StudyProblem::Value(
                    "numbers are for the places of an answer, and there is none: write answer = \"WORDS {NAME}\""
                        .to_owned(),
                ))),
                None => Ok(None),
            };
        };
        let text = field.text()?;
        let wrong =
            |problem: String| field.error(StudyProblem::Value(format!("\"answer\" has {problem}")));
        let pieces = text_pieces(text).map_err(|error| wrong(error.to_string()))?;
        let mut filled: Vec<Piece> = Vec::new();
        for piece in pieces {
            filled.push(match piece {
                // However its author has broken the lines.
                TextPiece::Words(words) => Piece::Words(words.replace(['\n', '\t'], " ")),
                TextPiece::Name(name) => {
                    let place = places.iter().find(|(place, _)| place.name == name);
                    let (place, _) = place.ok_or_else(|| {
                        wrong(format!(
                            "a place {{{name}}} that nothing fills: write [number.{}], or leave it out",
                            key(name)
                        ))
                    })?;
                    Piece::Place(Box::new(place.clone()))
                }
            });
        }
        places.retain(|(place, _)| !filled.contains(&Piece::Place(Box::new(place.clone()))));
        match places.first() {
            None => Ok(Some(Headline { pieces: filled })),
            Some((place, table)) => Err(table.error(StudyProblem::Value(format!(
                "\"answer\" has no place {{{}}} for this number: write it there, or leave the number out",
                place.name
            )))),
        }
    }

    /// What fills the places of the answer, each with where it stands.
    fn places<'t>(&self, top: &Table<'t>) -> Result<Vec<(Place, Table<'t>)>, StudyError> {
        let Some(field) = top.get("number") else {
            return Ok(Vec::new());
        };
        let known = [names(keys::NUMBER), names(keys::QUESTION)].concat();
        let place = |field: &Field<'t>| {
            let table = field.table(format!("[number.{}]", key(field.key())), &known)?;
            let question = self.question(&table)?;
            let within = table.read("within", Field::parse)?;
            let place = Place {
                name: field.key().to_owned(),
                bearing: match within {
                    Some(within) => Bearing::Within(within),
                    None if question.quantity.is_difference() => Bearing::Shown,
                    None => Bearing::Any,
                },
                question,
            };
            Ok((place, table))
        };
        field.named_tables()?.iter().map(place).collect()
    }

    fn question(&self, table: &Table) -> Result<Question, StudyError> {
        let measures = self.measures_of(table, "measure")?;
        let field = table.require("arm", "arm = \"NAME\"")?;
        let arm = self.arm(&field, &measures)?;
        let quantity = self.quantity(table, &measures)?;
        let distance = quantity.distance();
        let is_to_baseline = distance.is_some_and(|distance| distance.of.is_none());
        if is_to_baseline || matches!(quantity, Quantity::Increase | Quantity::Ratio { .. }) {
            self.check_compared(&field, &arm, &measures)?;
        }
        if distance.is_some_and(|distance| distance.of == Some(&*arm)) {
            return Err(field.error(StudyProblem::Value(format!(
                "{arm:?} is compared with itself: name another arm with of"
            ))));
        }
        let pool = table.read("pool", |field| field.list(Field::parse))?;
        Ok(Question {
            cells: self.cells(table, &measures)?,
            metric: self.metric(table, &measures, &[&*arm])?,
            arm,
            percentiles: percentiles(table)?.unwrap_or_else(|| self.percentiles.to_vec()),
            pool: pool.unwrap_or_default(),
            quantity,
            measures,
        })
    }

    fn quantity(&self, table: &Table, measures: &[String]) -> Result<Quantity, StudyError> {
        let what = table.require("what", "what = \"increase\"")?;
        let of = || self.arm(&table.require("of", "of = \"ARM\"")?, measures);
        let may_be_of = || table.read("of", |field| self.arm(field, measures));
        match what.text()? {
            "time" => Ok(Quantity::Time),
            "increase" => Ok(Quantity::Increase),
            "later" => Ok(Quantity::Later { of: may_be_of()? }),
            "sooner" => Ok(Quantity::Sooner { of: may_be_of()? }),
            "authentication" => Ok(Quantity::Authentication),
            "slowdown" => {
                let measures = if table.has("than_measure") {
                    self.measures_of(table, "than_measure")?
                } else {
                    measures.to_vec()
                };
                let than = filter(&table.require("than", "than = { loss = \"0%\" }")?)?;
                Ok(Quantity::Slowdown { measures, than })
            }
            "ratio" => Ok(Quantity::Ratio { of: of()? }),
            "multiple" => Ok(Quantity::Multiple { of: of()? }),
            other if let Ok(message) = other.parse() => Ok(Quantity::Message(message)),
            unknown => {
                let known = keys::QUANTITIES.iter().map(|word| word.name);
                let known = known.chain(MessageSize::all().map(MessageSize::name));
                let unknown = UnknownName::new("quantity", unknown, known);
                Err(what.error(StudyProblem::Value(unknown.to_string())))
            }
        }
    }

    /// A time that one of these arms has at least; of all that are measured there, where none is named.
    fn metric(
        &self,
        table: &Table,
        measures: &[String],
        arms: &[&str],
    ) -> Result<Metric, StudyError> {
        let Some(field) = table.get("metric") else {
            return Ok(Metric::default());
        };
        let metric: Metric = field.parse()?;
        let measured = self.measures.iter();
        let measured = measured.filter(|measure| measures.contains(&measure.id));
        let all = measured.flat_map(|measure| &measure.experiment.arms);
        let asked = all.filter(|arm| arms.is_empty() || arms.contains(&&*arm.name));
        check_metric(metric, asked)
            .map_err(|problem| field.error(StudyProblem::Value(problem.to_string())))?;
        Ok(metric)
    }

    /// What is to have an increase must not be the baseline.
    fn check_compared(
        &self,
        field: &Field,
        arm: &str,
        measures: &[String],
    ) -> Result<(), StudyError> {
        let is_baseline = |measure: &&Measure| {
            let first = measure.experiment.arms.first();
            measures.contains(&measure.id) && first.is_some_and(|first| first.name == arm)
        };
        match self.measures.iter().find(is_baseline) {
            None => Ok(()),
            Some(measure) => Err(field.error(StudyProblem::Value(format!(
                "{arm:?} is the baseline of {}, over which there is no increase: name another arm",
                measure.id
            )))),
        }
    }

    fn measures_of(&self, table: &Table, key: &str) -> Result<Vec<String>, StudyError> {
        let field = table.require(key, "measure = \"ID\"")?;
        field.list(|field| {
            let measure = find("measure", field, self.measures, |measure| &measure.id)?;
            Ok(measure.id.clone())
        })
    }

    /// An arm of some measure.
    fn arm(&self, field: &Field, measures: &[String]) -> Result<String, StudyError> {
        let arm = find("arm", field, self.arms, |arm| &arm.name)?;
        let mut measures = (self.measures.iter()).filter(|measure| measures.contains(&measure.id));
        let has = |measure: &Measure| {
            let mut arms = measure.experiment.arms.iter();
            arms.any(|known| known.name == arm.name)
        };
        if measures.any(has) {
            Ok(arm.name.clone())
        } else {
            Err(field.error(StudyProblem::Value(format!(
                "arm {:?} is not measured there: name another measure",
                arm.name
            ))))
        }
    }

    /// What `where` says, which must let some cell through.
    fn cells(&self, table: &Table, measures: &[String]) -> Result<Filter, StudyError> {
        let Some(field) = table.get("where") else {
            return Ok(Filter::default());
        };
        let filter = filter(&field)?;
        self.check_cells(&field, measures, &filter)?;
        Ok(filter)
    }

    /// A published number is of one cell, or of several together.
    fn check_one_place(&self, field: &Field, question: &Question) -> Result<(), StudyError> {
        let Question {
            measures, cells, ..
        } = question;
        match cells_named(self.measures, measures, cells).count() {
            count @ 2.. if question.pool.is_empty() => {
                Err(field.error(StudyProblem::Value(format!(
                    "that is {count} cells of {}: say which with where, or pool them",
                    measures.join(" and ")
                ))))
            }
            _ => Ok(()),
        }
    }

    fn check_cells(
        &self,
        field: &Field,
        measures: &[String],
        filter: &Filter,
    ) -> Result<(), StudyError> {
        match cells_named(self.measures, measures, filter).next() {
            Some(_) => Ok(()),
            None => Err(field.error(StudyProblem::Value(format!(
                "no cell of {} is like that: compare it with the measure's lists",
                measures.join(" and ")
            )))),
        }
    }
}

/// The tables under a header that may be absent.
fn tables<'a>(
    top: &Table<'a>,
    key: &str,
    header: &str,
    known: &[&str],
) -> Result<Vec<Table<'a>>, StudyError> {
    let tables = top.read(key, |field| field.tables(header, known))?;
    Ok(tables.unwrap_or_default())
}

fn percentiles(table: &Table) -> Result<Option<Vec<Percentile>>, StudyError> {
    table.read("percentiles", |field| field.list(percentile))
}

/// `{ rtt = "35ms", loss = ["1%", "3%"] }`, or a list of such.
fn filter(field: &Field) -> Result<Filter, StudyError> {
    Ok(Filter(field.list(alternative)?))
}

fn alternative(field: &Field) -> Result<Alternative, StudyError> {
    let table = field.table(
        format!("{} = {{ loss = \"0%\" }}", field.key()),
        &Parameter::ALL.map(Parameter::name),
    )?;
    let mut alternative = Vec::new();
    for parameter in Parameter::ALL {
        let canonical = |field: &Field| field.parse_with(|text| parameter.canonical(text));
        if let Some(values) = table.read(parameter.name(), |field| field.list(canonical))? {
            alternative.push((parameter, values));
        }
    }
    Ok(alternative)
}

/// `usual` with the values of `row`, which begins with those of `by`.
fn with_values(usual: &Published, row: &Field, by: &[Parameter]) -> Result<Published, StudyError> {
    let elements = row.elements()?;
    let percentiles = &usual.question.percentiles;
    if elements.len() != by.len() + percentiles.len() {
        let titles = by.iter().map(ToString::to_string);
        let titles: Vec<_> = titles
            .chain(percentiles.iter().map(ToString::to_string))
            .collect();
        return Err(row.error(StudyProblem::Value(format!(
            "{} values where there should be {}: write {}",
            elements.len(),
            titles.len(),
            titles.join(", ")
        ))));
    }
    let (place, values) = elements.split_at(by.len());
    let mut published = usual.clone();
    let place = by.iter().zip(place).map(|(parameter, field)| {
        let value = field.parse_with(|text| parameter.canonical(text))?;
        Ok((*parameter, vec![value]))
    });
    let place = place.collect::<Result<Alternative, StudyError>>()?;
    let Filter(alternatives) = &mut published.question.cells;
    if alternatives.is_empty() {
        alternatives.push(Vec::new());
    }
    for alternative in alternatives {
        alternative.extend(place.iter().cloned());
    }
    published.values = values.iter().map(number).collect::<Result<_, _>>()?;
    Ok(published)
}

fn number(field: &Field) -> Result<f64, StudyError> {
    let text = field.number()?.replace('_', "");
    let number = text.parse().ok().filter(|number: &f64| number.is_finite());
    number.ok_or_else(|| field.error(StudyProblem::Value(format!("{text} is no number"))))
}

/// The text is no [`Bounds`].
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} are no bounds: write some such as \"0..5\" or \"..15\"")]
pub struct NoBounds(String);

impl std::str::FromStr for Bounds {
    type Err = NoBounds;

    /// `0..5`, `..15` or `20..`
    fn from_str(text: &str) -> Result<Bounds, NoBounds> {
        let wrong = || NoBounds(text.to_owned());
        let (least, most) = text.split_once("..").ok_or_else(wrong)?;
        let end = |text: &str| match text.trim() {
            "" => Ok(None),
            number => match number.parse::<f64>() {
                Ok(number) if number.is_finite() => Ok(Some(number)),
                _ => Err(wrong()),
            },
        };
        let bounds = Bounds {
            least: end(least)?,
            most: end(most)?,
        };
        match (bounds.least, bounds.most) {
            (None, None) => Err(wrong()),
            (Some(least), Some(most)) if least > most => Err(wrong()),
            _ => Ok(bounds),
        }
    }
}
