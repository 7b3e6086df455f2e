//! Where users are: regions, how many users each has, and what is known of their distances.

use std::fmt::Display;
use std::ops::RangeInclusive;
use std::time::Duration;

use lastbyte_link::nearest;

use super::{GeographyError, PlaceProblem, Unit, name, rtt};
use lastbyte_study::table_file::{number, rows};

/// Regions of users.
#[derive(Clone, Debug, PartialEq)]
pub struct Users {
    /// What they are called in messages: their file.
    pub file: String,
    /// In the order of the file; one at least.
    pub regions: Vec<Region>,
}

/// Users who are served alike.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Region {
    /// Its name.
    pub name: String,
    /// How many users it has, or another weight; all regions have one, or none has.
    pub users: Option<f64>,
    /// The place of its edge, as the table of RTTs calls it.
    pub edge: Option<String>,
    /// From the users to their edge.
    pub edge_rtt: Option<Duration>,
    /// From the users to the origin, without an edge.
    pub origin_rtt: Option<Duration>,
    /// Where it is on a map.
    pub place: Option<Place>,
}

/// Degrees, north and east.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Place {
    /// From -90 to 90.
    pub latitude: f64,
    /// From -180 to 180.
    pub longitude: f64,
}

/// What a column says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Column {
    Region,
    Users,
    Edge,
    EdgeRtt(Unit),
    OriginRtt(Unit),
    Latitude,
    Longitude,
}

const COLUMNS: [(&str, Column); 12] = [
    ("region", Column::Region),
    ("users", Column::Users),
    ("weight", Column::Users),
    ("edge", Column::Edge),
    ("edge_rtt", Column::EdgeRtt(Unit::Said)),
    ("edge_rtt_ms", Column::EdgeRtt(Unit::Milliseconds)),
    ("origin_rtt", Column::OriginRtt(Unit::Said)),
    ("origin_rtt_ms", Column::OriginRtt(Unit::Milliseconds)),
    ("lat", Column::Latitude),
    ("latitude", Column::Latitude),
    ("lon", Column::Longitude),
    ("longitude", Column::Longitude),
];

impl Column {
    /// Whether two columns can't be there together.
    fn is_same(self, other: Column) -> bool {
        std::mem::discriminant(&self) == std::mem::discriminant(&other)
    }
}

impl Users {
    /// Reads CSV with a column `region`, and any of `users` (or `weight`), `edge`, `edge_rtt` (or `edge_rtt_ms`),
    /// `origin_rtt` (or `origin_rtt_ms`), `lat` and `lon`. Empty cells are not known. `file` is what it is called.
    ///
    /// # Errors
    ///
    /// When it has none of that, with the line.
    pub fn parse(file: &str, content: &[u8]) -> Result<Users, GeographyError> {
        let error =
            |line: Option<u64>, problem: &dyn Display| GeographyError::new(file, line, problem);
        let (names, rows) = rows(content).map_err(|problem| error(None, &problem))?;
        let columns = columns(&names).map_err(|problem| error(None, &problem))?;
        let mut regions: Vec<Region> = Vec::new();
        for (line, cells) in rows {
            let region = region(&columns, &cells).map_err(|problem| error(Some(line), &problem))?;
            if regions.iter().any(|other| other.name == region.name) {
                let problem = format!("region {:?} is there twice: leave one out", region.name);
                return Err(error(Some(line), &problem));
            }
            if let Some(first) = regions.first()
                && first.users.is_some() != region.users.is_some()
            {
                let problem =
                    "some regions have users and some have none: fill the column, or leave it out";
                return Err(error(Some(line), &problem));
            }
            regions.push(region);
        }
        let total: Option<f64> = regions.iter().map(|region| region.users).sum();
        match (&regions[..], total) {
            ([], _) => Err(error(
                None,
                &"there is no region in it: write one in each line",
            )),
            (_, Some(total)) if !(total > 0.0 && total.is_finite()) => Err(error(
                None,
                &"its users are none, or too many to add: give weights such as millions",
            )),
            _ => Ok(Users {
                file: file.to_owned(),
                regions,
            }),
        }
    }

    /// Whether it is known how many users the regions have.
    pub fn are_counted(&self) -> bool {
        self.regions.iter().all(|region| region.users.is_some())
    }
}

fn columns(names: &[String]) -> Result<Vec<Column>, PlaceProblem> {
    let mut columns = Vec::new();
    for name in names {
        let known = COLUMNS
            .iter()
            .find(|(known, _)| known.eq_ignore_ascii_case(name));
        let Some((_, column)) = known else {
            return Err(PlaceProblem::UnknownColumn {
                name: name.clone(),
                hint: nearest(name, COLUMNS.map(|(known, _)| known)),
            });
        };
        if columns.iter().any(|other| column.is_same(*other)) {
            return Err(PlaceProblem::TwoColumns(name.clone()));
        }
        columns.push(*column);
    }
    if columns.contains(&Column::Region) {
        Ok(columns)
    } else {
        Err(PlaceProblem::NoRegion)
    }
}

fn region(columns: &[Column], cells: &[String]) -> Result<Region, PlaceProblem> {
    let mut region = Region::default();
    let (mut latitude, mut longitude) = (None, None);
    for (column, cell) in columns.iter().zip(cells) {
        match column {
            Column::Region => region.name = name(cell, "a region")?,
            _ if cell.is_empty() => {}
            Column::Users => region.users = Some(weight(cell)?),
            Column::Edge => region.edge = Some(name(cell, "an edge")?),
            Column::EdgeRtt(unit) => region.edge_rtt = Some(rtt(cell, *unit)?),
            Column::OriginRtt(unit) => region.origin_rtt = Some(rtt(cell, *unit)?),
            Column::Latitude => latitude = Some(degrees(cell, "latitude", 90.0)?),
            Column::Longitude => longitude = Some(degrees(cell, "longitude", 180.0)?),
        }
    }
    region.place = match (latitude, longitude) {
        (Some(latitude), Some(longitude)) => Some(Place {
            latitude,
            longitude,
        }),
        (None, None) => None,
        (Some(_), None) => {
            return Err(PlaceProblem::HalfAPlace {
                one: "latitude",
                other: "longitude",
            });
        }
        (None, Some(_)) => {
            return Err(PlaceProblem::HalfAPlace {
                one: "longitude",
                other: "latitude",
            });
        }
    };
    Ok(region)
}

fn weight(cell: &str) -> Result<f64, PlaceProblem> {
    /// More than there are people, and what has a place in a table.
    const WEIGHTS: RangeInclusive<f64> = 1e-6..=1e15;
    let number = number(cell)?.parse::<f64>().ok();
    let number = number.filter(|number| *number == 0.0 || WEIGHTS.contains(number));
    number.ok_or_else(|| PlaceProblem::Weight(cell.to_owned()))
}

fn degrees(cell: &str, what: &'static str, most: f64) -> Result<f64, PlaceProblem> {
    let number = number(cell)?.parse::<f64>().ok();
    let number = number.filter(|number| number.abs() <= most);
    number.ok_or_else(|| PlaceProblem::Degrees {
        cell: cell.to_owned(),
        what,
        most,
    })
}
