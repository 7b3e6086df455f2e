//! What lists make: links of a link's table, cells of a measure's.

use std::path::Path;

use lastbyte_link::{Bytes, Direction, Distribution, Link};

use super::table::{Field, Table};
use super::{MOST_CELLS, StudyError, StudyProblem};
use crate::study::{Cell, Hosts, Preset, SETTINGS, load_distribution};

/// The keys of a link.
pub(super) const LINK: &[&str] = &[
    "rtt",
    "delay",
    "rate",
    "loss",
    "jitter",
    "jitter_distribution",
    "queue",
    "forward",
    "backward",
];

/// The keys of a direction of a link.
const DIRECTION: &[&str] = &[
    "delay",
    "rate",
    "loss",
    "jitter",
    "jitter_distribution",
    "queue",
];

/// The keys of cells, without those of their links.
pub(super) const GRID: &[&str] = &[
    "preset",
    "gso",
    "mtu",
    "timestamps",
    "buffers",
    "tso",
    "writes",
    "congestion",
    "client_initcwnd",
    "initcwnd",
    "think",
    "requests",
    "upload",
    "data",
];

/// Flight arithmetic goes through a response segment by segment.
const MOST_DATA: Bytes = Bytes(1 << 30);
/// An initial window in segments, at most.
const MOST_INITCWND: u32 = 1000;
/// Requests on one connection, at most.
const MOST_REQUESTS: u32 = 1000;

/// A link of the file, and what its lists make of it.
#[derive(PartialEq)]
pub(super) struct NamedLink {
    pub(super) name: Option<String>,
    pub(super) grid: Vec<Link>,
}

/// The links of a table. Its keys change faster the later they stand in [`LINK`].
pub(super) fn links(table: &Table, folder: &Path, most: usize) -> Result<Vec<Link>, StudyError> {
    let direction_table = |key| {
        let header = || table.header_of(key);
        table.read(key, |field| field.table(header(), DIRECTION))
    };
    let forward = direction_table("forward")?;
    let backward = direction_table("backward")?;
    let has_delay = |table: &Option<Table>| table.as_ref().is_some_and(|table| table.has("delay"));
    match (table.get("rtt"), table.get("delay")) {
        (Some(_), Some(delay)) => return Err(delay.conflict("\"rtt\"")),
        (None, None) if !(has_delay(&forward) && has_delay(&backward)) => {
            return Err(table.missing("rtt", "rtt = \"35ms\""));
        }
        _ => {}
    }

    let usual = Direction {
        distribution: Distribution::Normal,
        ..Direction::default()
    };
    let mut grid = Grid {
        points: vec![Link {
            forward: usual.clone(),
            backward: usual,
        }],
        most,
    };
    grid.vary(table, "rtt", Field::duration, |link, rtt| {
        let halves = Link::symmetric(rtt, Direction::default());
        link.forward.delay = halves.forward.delay;
        link.backward.delay = halves.backward.delay;
    })?;
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
    folder: &Path,
    directions: Directions,
) -> Result<(), StudyError> {
    let distribution = |field: &Field| field.parse_with(|text| load_distribution(text, folder));
    let queue = |field: &Field| field.whole(1..=u32::MAX);
    grid.vary(
        table,
        "delay",
        Field::duration,
        each(directions, |d, delay| d.delay = delay),
    )?;
    grid.vary(
        table,
        "rate",
        Field::parse,
        each(directions, |d, rate| d.rate = Some(rate)),
    )?;
    grid.vary(
        table,
        "loss",
        Field::parse,
        each(directions, |d, loss| d.loss = loss),
    )?;
    grid.vary(
        table,
        "jitter",
        Field::duration,
        each(directions, |d, jitter| d.jitter = jitter),
    )?;
    grid.vary(
        table,
        "jitter_distribution",
        distribution,
        each(directions, |d, distribution| d.distribution = distribution),
    )?;
    grid.vary(
        table,
        "queue",
        queue,
        each(directions, |d, queue| d.queue = queue),
    )
}

/// What sets the same in some directions of a link.
fn each<V: Clone>(
    directions: Directions,
    set: impl Fn(&mut Direction, V),
) -> impl Fn(&mut Link, V) {
    move |link, value| {
        for direction in directions(link) {
            set(direction, value.clone());
        }
    }
}

/// The cells of a table over `links`. Its keys change faster the later they stand in [`GRID`].
pub(super) fn cells(
    table: &Table,
    links: &[&NamedLink],
    most: usize,
) -> Result<Vec<Cell>, StudyError> {
    let on = |named: &&NamedLink, link: &Link| Cell {
        link: link.clone(),
        link_name: named.name.clone(),
        ..Cell::default()
    };
    let mut grid = Grid {
        points: (links.iter())
            .flat_map(|named| named.grid.iter().map(move |link| on(named, link)))
            .collect(),
        most,
    };
    let initcwnd = |field: &Field| field.whole(1..=MOST_INITCWND);
    grid.vary(table, "preset", Field::parse, |cell, preset: Preset| {
        cell.preset = preset;
        cell.gso = preset.gso();
        cell.hosts = Hosts::of(preset);
    })?;
    grid.vary(table, "gso", Field::parse, |cell, gso| cell.gso = gso)?;
    for setting in &SETTINGS {
        let read = |field: &Field| {
            let text = match field.is_text() {
                true => field.text()?,
                false => field.number()?,
            };
            let canonical = setting.canonical(text);
            canonical.map_err(|problem| field.error(StudyProblem::Value(problem)))
        };
        grid.vary(table, setting.name, read, |cell, text| {
            // It was read before.
            let _ = (setting.set)(&mut cell.hosts, &text);
        })?;
    }
    grid.vary(table, "congestion", Field::parse, |cell, congestion| {
        cell.congestion = congestion;
    })?;
    grid.vary(table, "client_initcwnd", initcwnd, |cell, initcwnd| {
        cell.client_initcwnd = initcwnd;
    })?;
    grid.vary(table, "initcwnd", initcwnd, |cell, initcwnd| {
        cell.initcwnd = initcwnd;
    })?;
    let requests = |field: &Field| field.whole(1..=MOST_REQUESTS);
    grid.vary(table, "think", Field::duration, |cell, think| {
        cell.think = think;
    })?;
    grid.vary(table, "requests", requests, |cell, requests| {
        cell.requests = requests;
    })?;
    grid.vary(table, "upload", data, |cell, upload| cell.upload = upload)?;
    grid.vary(table, "data", data, |cell, data| cell.data = data)?;
    let cells = grid.finish(table)?;
    match cells.iter().find_map(|cell| cell.check().err()) {
        Some(problem) => Err(table.error(StudyProblem::Value(problem))),
        None => Ok(cells),
    }
}

fn data(field: &Field) -> Result<Bytes, StudyError> {
    let data: Bytes = field.parse()?;
    if data > MOST_DATA {
        return Err(field.out_of_range(data, Bytes(0)..=MOST_DATA));
    }
    Ok(data)
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
    fn finish(self, table: &Table) -> Result<Vec<T>, StudyError> {
        if self.points.len() > self.most {
            return Err(table.error(StudyProblem::TooMany { most: MOST_CELLS }));
        }
        Ok(self.points)
    }
}
