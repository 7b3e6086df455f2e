//! What lists make: links of a link's table, cells of a measure's.

use std::sync::LazyLock;

use lastbyte_link::{Bytes, Direction, Distribution, Link};

use super::keys::{self, names};
use super::table::{Field, Table};
use super::{MOST_CELLS, StudyError, StudyProblem};
use crate::parameter::Reading;
use crate::value::ParameterError;
use crate::{Cell, NamedNetwork, Parameter, Population, StudyFolder, Traffic};

/// The keys of a link.
pub(super) static LINK: LazyLock<Vec<&str>> = LazyLock::new(|| {
    let mut keys = names(keys::NETWORK);
    keys.extend(parameters(|parameter| parameter.of_link().is_some()));
    keys.extend(DIRECTION.iter());
    keys.extend(names(keys::DIRECTIONS));
    keys
});

/// The keys of a direction of a link.
static DIRECTION: LazyLock<Vec<&str>> = LazyLock::new(|| {
    let mut keys = names(keys::DELAY);
    keys.extend(parameters(Parameter::is_of_direction));
    keys
});

/// The keys of cells, without those of their links.
pub(super) static GRID: LazyLock<Vec<&str>> =
    LazyLock::new(|| parameters(|parameter| parameter.of_cell().is_some()));

fn parameters(is_one: fn(Parameter) -> bool) -> Vec<&'static str> {
    let all = Parameter::ALL.into_iter();
    all.filter(|parameter| is_one(*parameter))
        .map(Parameter::name)
        .collect()
}

/// A link of the file, and what its lists make of it.
#[derive(PartialEq)]
pub(super) struct NamedLink {
    pub(super) name: Option<String>,
    pub(super) grid: Vec<Link>,
}

impl NamedLink {
    /// One of which a population draws everything.
    pub(super) fn drawn() -> NamedLink {
        NamedLink {
            name: None,
            grid: vec![usual()],
        }
    }
}

/// A link of which nothing is said.
pub(super) fn usual() -> Link {
    let direction = Direction {
        distribution: Distribution::Normal,
        ..Direction::default()
    };
    Link {
        forward: direction.clone(),
        backward: direction,
    }
}

/// What each connection draws, so that tables must be silent about it.
#[derive(Clone, Copy, Default)]
pub(super) struct Drawn<'a> {
    pub(super) population: Option<&'a Population>,
    /// What the connections of cells carry that say nothing of that, below all that tables say.
    pub(super) traffic: Option<&'a Traffic>,
}

impl Drawn<'_> {
    pub(super) fn draws(self, parameter: Parameter) -> bool {
        self.population
            .is_some_and(|population| population.draws(parameter))
    }

    fn check(self, table: &Table) -> Result<(), StudyError> {
        for parameter in Parameter::drawable().filter(|one| self.draws(*one)) {
            let delay = (parameter == Parameter::RTT)
                .then(|| table.get("delay"))
                .flatten();
            if let Some(field) = table.get(parameter.name()).or(delay) {
                return Err(field.conflict("[population], which draws it"));
            }
        }
        Ok(())
    }
}

/// The links of a table. Its keys change faster the later they stand in [`LINK`].
pub(super) fn links(
    table: &Table,
    folder: &StudyFolder,
    most: usize,
    drawn: Drawn<'_>,
) -> Result<Vec<Link>, StudyError> {
    drawn.check(table)?;
    let direction_table = |key| {
        let header = || table.header_of(key);
        table.read(key, |field| field.table(header(), &DIRECTION))
    };
    let forward = direction_table("forward")?;
    let backward = direction_table("backward")?;
    for direction in [&forward, &backward].into_iter().flatten() {
        drawn.check(direction)?;
    }
    if let Some(field) = table.get("network")
        && Parameter::drawable().any(|one| one.is_of_link() && drawn.draws(one))
    {
        return Err(field.conflict("[population], which draws it"));
    }
    let has_delay = |table: &Option<Table>| table.as_ref().is_some_and(|table| table.has("delay"));
    match (table.get("rtt"), table.get("delay")) {
        (Some(_), Some(delay)) => return Err(delay.conflict("\"rtt\"")),
        (None, None) if drawn.draws(Parameter::RTT) || table.has("network") => {}
        (None, None) if !(has_delay(&forward) && has_delay(&backward)) => {
            return Err(table.missing("rtt", "rtt = \"35ms\""));
        }
        _ => {}
    }

    let mut grid = Grid {
        points: vec![usual()],
        most,
    };
    let network = |field: &Field| field.parse_with(NamedNetwork::find);
    grid.vary(table, "network", network, |link, network| {
        *link = network.link();
    })?;
    for parameter in Parameter::ALL {
        if let Some(set) = parameter.of_link() {
            grid.vary_parameter(table, parameter, |link, text| set(link, text, folder))?;
        }
    }
    vary_directions(&mut grid, table, folder, |link| {
        vec![&mut link.forward, &mut link.backward]
    })?;
    if let Some(table) = forward {
        vary_directions(&mut grid, &table, folder, |link| vec![&mut link.forward])?;
    }
    if let Some(table) = backward {
        vary_directions(&mut grid, &table, folder, |link| vec![&mut link.backward])?;
    }
    grid.finish(table)
}

/// Some directions of a link.
type Directions = fn(&mut Link) -> Vec<&mut Direction>;

fn vary_directions(
    grid: &mut Grid<Link>,
    table: &Table,
    folder: &StudyFolder,
    directions: Directions,
) -> Result<(), StudyError> {
    grid.vary(table, "delay", Field::duration, |link, delay| {
        for direction in directions(link) {
            direction.delay = delay;
        }
    })?;
    for parameter in Parameter::ALL {
        if parameter.is_of_direction() {
            grid.vary_parameter(table, parameter, |link, text| {
                parameter.set_directions(&mut directions(link), text, folder)
            })?;
        }
    }
    Ok(())
}

/// The cells of a table over `links`. Its keys change faster the later they stand in [`GRID`].
pub(super) fn cells(
    table: &Table,
    links: &[&NamedLink],
    folder: &StudyFolder,
    most: usize,
    drawn: Drawn<'_>,
) -> Result<Vec<Cell>, StudyError> {
    drawn.check(table)?;
    let on = |named: &&NamedLink, link: &Link| Cell {
        link: link.clone(),
        link_name: named.name.clone(),
        traffic: drawn.traffic.cloned(),
        ..Cell::default()
    };
    let mut grid = Grid {
        points: (links.iter())
            .flat_map(|named| named.grid.iter().map(move |link| on(named, link)))
            .collect(),
        most,
    };
    for parameter in Parameter::ALL {
        if let Some(set) = parameter.of_cell() {
            grid.vary_parameter(table, parameter, |cell, text| set(cell, text, folder))?;
        }
    }
    let mut cells = grid.finish(table)?;
    for cell in &mut cells {
        let said = Parameter::drawable().filter(|parameter| table.has(parameter.name()));
        cell.traffic = (cell.traffic.take()).map(|traffic| traffic.beside(said));
    }
    // What is drawn is seen to connection by connection.
    let is_drawn = |cell: &&Cell| drawn.population.is_some() || cell.traffic.is_some();
    let mut checked = cells.iter().filter(|cell| !is_drawn(cell));
    match checked.find_map(|cell| cell.check().err()) {
        Some(problem) => Err(table.error(StudyProblem::Value(problem.to_string()))),
        None => Ok(cells),
    }
}

/// A value of a list.
#[derive(Clone)]
struct Text {
    text: String,
    /// What tells it from others: `35ms` is `0.035s`.
    canonical: String,
}

impl PartialEq for Text {
    fn eq(&self, other: &Text) -> bool {
        self.canonical == other.canonical
    }
}

/// Reads what a parameter can be where it stands.
fn text(
    field: &Field,
    parameter: Parameter,
    check: impl Fn(&str) -> Result<(), ParameterError>,
) -> Result<Text, StudyError> {
    let text = match parameter.reading() {
        Reading::Whole(range) => field.whole(range.clone())?.to_string(),
        Reading::Bytes(most) => {
            let bytes: Bytes = field.parse()?;
            if bytes > *most {
                return Err(field.out_of_range(bytes, Bytes(0)..=*most));
            }
            bytes.to_string()
        }
        Reading::Name | Reading::Text | Reading::Ways | Reading::Files => {
            field.parse_with(|text| check(text).map(|()| text.to_owned()))?
        }
    };
    let canonical = field.parse_with(|_| parameter.canonical(&text))?;
    Ok(Text { text, canonical })
}

/// Every combination of what lists have.
struct Grid<T> {
    points: Vec<T>,
    most: usize,
}

impl<T: Clone> Grid<T> {
    /// Has every value of a list, if there is one, at every point so far.
    fn vary<'a, V: Clone + PartialEq>(
        &mut self,
        table: &Table<'a>,
        key: &str,
        read: impl Fn(&Field<'a>) -> Result<V, StudyError>,
        set: impl Fn(&mut T, V),
    ) -> Result<(), StudyError> {
        let Some(field) = table.get(key) else {
            return Ok(());
        };
        let values = field.list(read)?;
        if self.points.len().saturating_mul(values.len()) > self.most {
            return Err(field.error(StudyProblem::TooMany { most: MOST_CELLS }));
        }
        let with = |point: &T, value: &V| {
            let mut point = point.clone();
            set(&mut point, value.clone());
            point
        };
        self.points = (self.points.iter())
            .flat_map(|point| values.iter().map(|value| with(point, value)))
            .collect();
        Ok(())
    }

    /// The same of a parameter.
    fn vary_parameter(
        &mut self,
        table: &Table,
        parameter: Parameter,
        set: impl Fn(&mut T, &str) -> Result<(), ParameterError>,
    ) -> Result<(), StudyError> {
        let first = self.points.first().cloned();
        let check = |text: &str| {
            let mut first = first.clone();
            first.as_mut().map_or(Ok(()), |point| set(point, text))
        };
        let read = |field: &Field| text(field, parameter, check);
        self.vary(table, parameter.name(), read, |point, value| {
            // It was read before.
            let _ = set(point, &value.text);
        })
    }

    fn finish(self, table: &Table) -> Result<Vec<T>, StudyError> {
        if self.points.len() > self.most {
            return Err(table.error(StudyProblem::TooMany { most: MOST_CELLS }));
        }
        Ok(self.points)
    }
}
