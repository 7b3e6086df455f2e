//! Tables of TOML that know their lines, and what is to be found in them.

use std::fmt::Display;
use std::ops::{Range, RangeInclusive};
use std::path::Path;
use std::str::FromStr;
use std::time::Duration;

use lastbyte_link::{is_hidden, nearest, parse_duration};
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::{StudyError, StudyProblem};
use crate::{Parameter, Study};

/// The text of a study file.
#[derive(Clone, Copy)]
pub(super) struct Source<'a> {
    pub(super) path: &'a Path,
    pub(super) text: &'a str,
}

impl<'a> Source<'a> {
    pub(super) fn parse(self) -> Result<Spanned<DeTable<'a>>, StudyError> {
        DeTable::parse(self.text).map_err(|error| {
            let place = error.span().unwrap_or_default();
            let problem = match error.message() {
                "duplicate key" => StudyProblem::KeyTwice(
                    self.text.get(place.clone()).unwrap_or_default().to_owned(),
                ),
                message => StudyProblem::Syntax(message.to_owned()),
            };
            self.error(&place, problem)
        })
    }

    fn error(self, place: &Range<usize>, problem: StudyProblem) -> StudyError {
        let before = self.text.as_bytes().iter().take(place.start);
        StudyError::Wrong {
            path: self.path.to_owned(),
            line: 1 + before.filter(|byte| **byte == b'\n').count(),
            problem: Box::new(problem),
        }
    }
}

/// A table that has no keys but those that are known.
pub(super) struct Table<'a> {
    source: Source<'a>,
    /// As it is written; empty for what stands above all tables.
    header: String,
    place: Range<usize>,
    entries: &'a DeTable<'a>,
}

impl<'a> Table<'a> {
    /// What stands above all tables of a file that may have whatever else it likes.
    pub(super) fn of_any(source: Source<'a>, entries: &'a DeTable<'a>) -> Self {
        Self {
            source,
            header: String::new(),
            place: 0..0,
            entries,
        }
    }

    pub(super) fn new(
        source: Source<'a>,
        header: String,
        place: Range<usize>,
        entries: &'a DeTable<'a>,
        known: &[&str],
    ) -> Result<Self, StudyError> {
        let unknown = entries
            .keys()
            .find(|key| !known.contains(&key.get_ref().as_ref()));
        match unknown {
            None => Ok(Self {
                source,
                header,
                place,
                entries,
            }),
            Some(key) => {
                let problem = StudyProblem::UnknownKey {
                    key: key.get_ref().to_string(),
                    table: header,
                    hint: hint(key.get_ref(), known),
                };
                Err(source.error(&key.span(), problem))
            }
        }
    }

    pub(super) fn get(&self, key: &str) -> Option<Field<'a>> {
        let (key, value) = self.entries.get_key_value(key)?;
        Some(Field {
            source: self.source,
            key: key.get_ref(),
            place: key.span(),
            value: value.get_ref(),
        })
    }

    /// Its keys in the order of the file, each with its value as it is written.
    pub(super) fn written(&self) -> Vec<(&'a str, &'a str)> {
        let mut all: Vec<_> = self.entries.iter().collect();
        all.sort_by_key(|(key, _)| key.span().start);
        let texts = all.into_iter().map(|(key, value)| {
            let text = self.source.text.get(value.span()).unwrap_or_default();
            (&**key.get_ref(), text)
        });
        texts.collect()
    }

    pub(super) fn has(&self, key: &str) -> bool {
        self.entries.contains_key(key)
    }

    /// How a table within this one is written.
    pub(super) fn header_of(&self, key: &str) -> String {
        match self.header.strip_suffix(']') {
            Some(header) => format!("{header}.{key}]"),
            None => format!("{}.{key}", self.header),
        }
    }

    /// What must be there.
    pub(super) fn require(
        &self,
        key: &str,
        example: &'static str,
    ) -> Result<Field<'a>, StudyError> {
        self.get(key).ok_or_else(|| self.missing(key, example))
    }

    /// What may be there.
    pub(super) fn read<T>(
        &self,
        key: &str,
        read: impl FnOnce(&Field<'a>) -> Result<T, StudyError>,
    ) -> Result<Option<T>, StudyError> {
        self.get(key).map(|field| read(&field)).transpose()
    }

    pub(super) fn missing(&self, key: &str, example: &'static str) -> StudyError {
        self.error(StudyProblem::Missing {
            key: key.to_owned(),
            table: self.header.clone(),
            example,
        })
    }

    /// For a table whose name another one has.
    pub(super) fn same_name(&self, kind: &'static str, name: &str) -> StudyError {
        self.error(StudyProblem::SameName {
            kind,
            name: name.to_owned(),
        })
    }

    pub(super) fn error(&self, problem: StudyProblem) -> StudyError {
        self.source.error(&self.place, problem)
    }
}

/// A value and the key that leads to it.
pub(super) struct Field<'a> {
    source: Source<'a>,
    key: &'a str,
    place: Range<usize>,
    value: &'a DeValue<'a>,
}

/// What a key may have been meant for: a parameter under the name that another tool has for it, or what is
/// nearest.
fn hint(key: &str, known: &[&str]) -> String {
    let elsewhere = Parameter::called_elsewhere(key).map(Parameter::name);
    match elsewhere.filter(|name| known.contains(name)) {
        Some(name) => format!("it is called {name:?} here"),
        None => nearest(key, known.iter().copied()),
    }
}

impl<'a> Field<'a> {
    pub(super) fn key(&self) -> &'a str {
        self.key
    }

    pub(super) fn is_table(&self) -> bool {
        self.value.is_table()
    }

    pub(super) fn is_list(&self) -> bool {
        self.value.is_array()
    }

    /// Whether a key of this name is anywhere in it.
    pub(super) fn mentions(&self, key: &str) -> bool {
        fn inside(value: &DeValue, key: &str) -> bool {
            match value {
                DeValue::Array(all) => all.iter().any(|one| inside(one.get_ref(), key)),
                DeValue::Table(all) => all
                    .iter()
                    .any(|(name, one)| *name.get_ref() == key || inside(one.get_ref(), key)),
                _ => false,
            }
        }
        inside(self.value, key)
    }

    pub(super) fn is_text(&self) -> bool {
        self.value.is_str()
    }

    pub(super) fn is_integer(&self) -> bool {
        self.value.is_integer()
    }

    /// A text that is not empty.
    pub(super) fn text(&self) -> Result<&'a str, StudyError> {
        match self.value.as_str() {
            Some("") => Err(self.error(StudyProblem::Empty {
                key: self.key.to_owned(),
                wanted: "a text".to_owned(),
            })),
            Some(text) => self.without_controls(text).map(|()| text),
            None => Err(self.wrong_type("a text in quotes")),
        }
    }

    /// A text that files, columns and axes are called by.
    pub(super) fn name(&self) -> Result<&'a str, StudyError> {
        let name = self.line()?;
        self.check_length(name, Study::LONGEST_NAME)?;
        Ok(name)
    }

    /// A text of one line, whatever its length.
    pub(super) fn line(&self) -> Result<&'a str, StudyError> {
        let line = self.text()?;
        self.check_name(line)?;
        Ok(line)
    }

    /// Whether a name is no longer than it may be.
    pub(super) fn check_length(&self, name: &str, most: usize) -> Result<(), StudyError> {
        const SHOWN: usize = 20;
        match name.chars().count() {
            found if found > most => Err(self.error(StudyProblem::Long {
                start: name.chars().take(SHOWN).collect(),
                found,
                most,
            })),
            _ => Ok(()),
        }
    }

    /// Whether this can be a name, which has one line.
    fn check_name(&self, name: &str) -> Result<(), StudyError> {
        if let Some(character) = name.chars().find(|c| is_hidden(*c)) {
            let key = self.key.to_owned();
            return Err(self.error(StudyProblem::Control { key, character }));
        }
        Ok(())
    }

    fn without_controls(&self, text: &str) -> Result<(), StudyError> {
        let is_refused = |c: &char| is_hidden(*c) && !['\n', '\t'].contains(c);
        match text.chars().find(is_refused) {
            Some(character) => Err(self.error(StudyProblem::Control {
                key: self.key.to_owned(),
                character,
            })),
            None => Ok(()),
        }
    }

    /// What is written as a text. A bare number goes the same way, since whatever reads it knows
    /// best which unit it misses.
    pub(super) fn parse<T: FromStr<Err: Display>>(&self) -> Result<T, StudyError> {
        self.parse_with(T::from_str)
    }

    pub(super) fn duration(&self) -> Result<Duration, StudyError> {
        self.parse_with(parse_duration)
    }

    pub(super) fn parse_with<T, E: Display>(
        &self,
        parse: impl FnOnce(&str) -> Result<T, E>,
    ) -> Result<T, StudyError> {
        let parsed = match self.value {
            DeValue::Integer(number) => parse(&number.to_string()),
            DeValue::Float(number) => parse(number.as_str()),
            _ => parse(self.text()?),
        };
        parsed.map_err(|error| self.error(StudyProblem::Value(error.to_string())))
    }

    /// A whole number within `range`.
    pub(super) fn whole<T>(&self, range: RangeInclusive<T>) -> Result<T, StudyError>
    where
        T: TryFrom<u64> + PartialOrd + Display,
    {
        let Some(number) = self.value.as_integer() else {
            return Err(self.wrong_type("a whole number"));
        };
        u64::from_str_radix(number.as_str(), number.radix())
            .ok()
            .and_then(|number| T::try_from(number).ok())
            .filter(|number| range.contains(number))
            .ok_or_else(|| self.out_of_range(number, range))
    }

    /// A number, as it is written.
    pub(super) fn number(&self) -> Result<&'a str, StudyError> {
        match self.value {
            DeValue::Integer(number) if number.radix() == 10 => Ok(number.as_str()),
            DeValue::Float(number) => Ok(number.as_str()),
            _ => Err(self.wrong_type("a number")),
        }
    }

    /// The elements of a list, none of them twice. What is no list is a list of one.
    pub(super) fn list<T: PartialEq>(
        &self,
        read: impl Fn(&Field<'a>) -> Result<T, StudyError>,
    ) -> Result<Vec<T>, StudyError> {
        let Some(elements) = self.value.as_array() else {
            return Ok(vec![read(self)?]);
        };
        let mut list = Vec::with_capacity(elements.len());
        for element in elements.iter() {
            let element = self.element(element);
            let value = read(&element)?;
            if list.contains(&value) {
                return Err(element.error(StudyProblem::Twice {
                    key: self.key.to_owned(),
                    value: element.shown(),
                }));
            }
            list.push(value);
        }
        if list.is_empty() {
            return Err(self.empty("at least one"));
        }
        Ok(list)
    }

    /// The elements of a list.
    pub(super) fn elements(&self) -> Result<Vec<Field<'a>>, StudyError> {
        match self.value.as_array() {
            Some(elements) => Ok(elements.iter().map(|value| self.element(value)).collect()),
            None => Err(self.wrong_type("a list")),
        }
    }

    /// What stands in one cell of a table, whatever its type.
    pub(super) fn cell(&self) -> Result<String, StudyError> {
        match self.value {
            DeValue::Boolean(truth) => Ok(truth.to_string()),
            DeValue::String(text) => Ok(text.to_string()),
            _ => self.number().map(str::to_owned),
        }
    }

    /// A table under a header of its own.
    pub(super) fn table(&self, header: String, known: &[&str]) -> Result<Table<'a>, StudyError> {
        match self.value.as_table() {
            Some(entries) => Table::new(self.source, header, self.place.clone(), entries, known),
            None => Err(self.wrong_type(&format!("a table such as {header}"))),
        }
    }

    /// Tables under one header, in their order.
    pub(super) fn tables(
        &self,
        header: &str,
        known: &[&str],
    ) -> Result<Vec<Table<'a>>, StudyError> {
        let Some(elements) = self.value.as_array() else {
            return Err(self.wrong_type(&format!("tables such as {header}")));
        };
        if elements.is_empty() {
            return Err(self.empty(&format!("at least one {header}")));
        }
        let table = |element| {
            let element = self.element(element);
            element.table(header.to_owned(), known)
        };
        elements.iter().map(table).collect()
    }

    /// The tables in a table of tables, in their order.
    pub(super) fn named_tables(&self) -> Result<Vec<Field<'a>>, StudyError> {
        let Some(entries) = self.value.as_table() else {
            return Err(self.wrong_type(&format!("a table such as [{}.NAME]", self.key)));
        };
        if entries.is_empty() {
            return Err(self.empty(&format!("a table such as [{}.NAME]", self.key)));
        }
        let field = |(key, value): (&'a Spanned<_>, &'a Spanned<_>)| Field::<'a> {
            source: self.source,
            key: AsRef::<std::borrow::Cow<'a, str>>::as_ref(key),
            place: key.span(),
            value: value.get_ref(),
        };
        let fields: Vec<Field<'a>> = entries.iter().map(field).collect();
        for field in &fields {
            field.check_name(field.key)?;
        }
        Ok(fields)
    }

    pub(super) fn error(&self, problem: StudyProblem) -> StudyError {
        self.source.error(&self.place, problem)
    }

    pub(super) fn out_of_range(
        &self,
        value: impl Display,
        range: RangeInclusive<impl Display>,
    ) -> StudyError {
        self.error(StudyProblem::Range {
            key: self.key.to_owned(),
            value: value.to_string(),
            least: range.start().to_string(),
            most: range.end().to_string(),
        })
    }

    /// For a key that stands beside `other`.
    pub(super) fn conflict(&self, other: &'static str) -> StudyError {
        self.error(StudyProblem::Conflict {
            key: self.key.to_owned(),
            other,
        })
    }

    fn element(&self, element: &'a Spanned<DeValue<'a>>) -> Field<'a> {
        Field {
            source: self.source,
            key: self.key,
            place: element.span(),
            value: element.get_ref(),
        }
    }

    fn empty(&self, wanted: &str) -> StudyError {
        self.error(StudyProblem::Empty {
            key: self.key.to_owned(),
            wanted: wanted.to_owned(),
        })
    }

    /// An error: the value is of another kind than what is `wanted`.
    pub(super) fn wrong_type(&self, wanted: &str) -> StudyError {
        let found = match self.value {
            DeValue::String(_) => "a text",
            DeValue::Integer(_) => "a whole number",
            DeValue::Float(_) => "a fraction",
            DeValue::Boolean(_) => "a truth value",
            DeValue::Datetime(_) => "a date",
            DeValue::Array(_) => "a list",
            DeValue::Table(_) => "a table",
        };
        self.error(StudyProblem::Type {
            key: self.key.to_owned(),
            found: found.to_owned(),
            wanted: wanted.to_owned(),
        })
    }

    /// The value in one line.
    fn shown(&self) -> String {
        match self.value {
            DeValue::String(text) => format!("{text:?}"),
            DeValue::Integer(number) => number.to_string(),
            DeValue::Float(number) => number.as_str().to_owned(),
            _ => "a value".to_owned(),
        }
    }
}
