//! `lastbyte rtt`.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::builder::{RangedU64ValueParser, Resettable, TypedValueParser};
use clap::{ArgMatches, Args, Command, FromArgMatches, ValueEnum};
use lastbyte_link::{Direction, Rate, UnitError, parse_duration};

use super::draft::{Draft, named_twice};
use super::options::Network;
use super::{Failure, arguments, print, print_json, screen};
use lastbyte::geography::{Geography, OriginConnection, Question, RttTable, Setting, Users};
use lastbyte::report::geography as report;
use lastbyte::study::{Arm, Cell, Parameter};

/// Tells the first byte by region, with an edge near the users and without, by arithmetic over tables of
/// RTTs. Without arms, tells what a table holds: that which comes along, or your own.
#[derive(Debug, Args)]
pub(super) struct Rtt {
    /// What users connect with: [NAME=]GROUP/CHAIN[:BYTESB][/KEY=VALUE...], as `compare` takes it, or a chain alone: ml-dsa-44;
    /// the first is the baseline
    #[arg(value_name = "ARM", value_parser = arguments::named, requires_all = ["users", "origin"])]
    arms: Vec<Arm>,
    /// RTTs as CSV: a square of milliseconds with names, or lines of from,to,rtt_ms [default: Azure's regions,
    /// datacentre to datacentre]
    #[arg(long, value_name = "FILE.csv")]
    table: Option<PathBuf>,
    /// Regions of users as CSV: region, and as known users, edge, edge_rtt, origin_rtt, lat, lon
    #[arg(long, value_name = "FILE.csv", requires = "origin")]
    users: Option<PathBuf>,
    /// Where the origin is, in the words of the table
    #[arg(long, value_name = "PLACE", requires = "users")]
    origin: Option<String>,
    /// Where edges are, in the words of the table [default: what the regions say, or places of their names]
    #[arg(long, value_name = "PLACE", value_delimiter = ',', requires = "users")]
    edge: Vec<String>,
    /// RTT from users to their edge where none was measured; a list makes cases
    #[arg(long, value_name = "TIME", value_delimiter = ',', value_parser = rtt, requires = "users")]
    user_edge: Vec<Duration>,
    /// RTT from an edge to the origin where both are in one place
    #[arg(long, value_name = "TIME", value_parser = rtt, requires = "users")]
    within: Option<Duration>,
    /// How edges come by the answer: cold (a new connection to the origin), warm (one that is there), cached
    #[arg(
        long,
        value_name = "NAME",
        value_delimiter = ',',
        default_value = "cold,warm"
    )]
    origin_connection: Vec<OriginConnection>,
    /// What edges connect to the origin with [default: what the users connect with]
    #[arg(long, value_name = "ARM", value_parser = arguments::named, requires = "users")]
    origin_arm: Option<Arm>,
    /// The origin's initial congestion window towards edges
    #[arg(long, value_name = "SEGMENTS", default_value = "10", value_parser = window())]
    origin_initcwnd: u32,
    /// Rate of each direction between edges and the origin
    #[arg(long, value_name = "RATE", default_value = "1gbit")]
    origin_rate: Rate,
    /// Write a dot plot by region
    #[arg(long, value_name = "FILE.svg", requires = "arms")]
    svg: Option<PathBuf>,
    /// Write a map of the regions that have lat and lon
    #[arg(long, value_name = "FILE.svg", requires = "arms")]
    map: Option<PathBuf>,
    /// Write the users' RTTs to their edges for a study: [population] joint = "FILE.csv"
    #[arg(long, value_name = "FILE.csv", requires = "users")]
    population: Option<PathBuf>,
    /// How it is told
    #[arg(long, value_name = "NAME", default_value = "text")]
    format: Format,
    #[command(flatten, next_help_heading = "Network of the users")]
    network: Front,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Format {
    Text,
    Json,
}

/// A network whose RTT is said by tables.
#[derive(Debug)]
struct Front(Network);

impl Args for Front {
    fn augment_args(command: Command) -> Command {
        let command = Network::augment_args(command);
        let command = command.mut_arg(Parameter::DATA.name(), |data| data.default_value("50KiB"));
        command.mut_arg(Parameter::RTT.name(), |rtt| {
            (rtt.hide(true).default_value(Resettable::Reset)).value_parser(|_: &str| {
                Err::<String, _>("RTTs are in --table, in --users or stated with --user-edge")
            })
        })
    }

    fn augment_args_for_update(command: Command) -> Command {
        Front::augment_args(command)
    }
}

impl FromArgMatches for Front {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Front, clap::Error> {
        Network::from_arg_matches(matches).map(Front)
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        self.0.update_from_arg_matches(matches)
    }
}

impl Rtt {
    pub(super) fn run(self) -> Result<(), Failure> {
        let table = match &self.table {
            None => RttTable::azure(),
            Some(path) => RttTable::parse(&path.to_string_lossy(), &arguments::table(path)?),
        };
        let table = table.map_err(Failure::usage)?;
        let Some(users) = &self.users else {
            return match self.format {
                Format::Text => print(&report::table(&table, screen())),
                Format::Json => print_json(&report::table_json(&table)),
            };
        };
        let users = Users::parse(&users.to_string_lossy(), &arguments::table(users)?);
        let question = self.question()?;
        let has_arms = !question.arms.is_empty();
        let geography = users.and_then(|users| Geography::new(question, &users, &table));
        let geography = geography.map_err(Failure::usage)?;
        let map = match &self.map {
            None => None,
            Some(_) => {
                let map = report::map(&geography, only(&geography, "--map")?);
                Some(map.ok_or_else(|| {
                    Failure::Usage("no region has a place on a map: give lat and lon".to_owned())
                })?)
            }
        };
        if let Some(path) = &self.svg {
            self.write(path, &report::dots(&geography))?;
        }
        if let Some((path, map)) = self.map.as_ref().zip(map) {
            self.write(path, &map)?;
        }
        if let Some(path) = &self.population {
            self.write(path, &only(&geography, "--population")?.joint_csv())?;
        }
        match self.format {
            Format::Json => print_json(&report::json(&geography, &table)),
            Format::Text if !has_arms && self.population.is_some() => Ok(()),
            Format::Text => print(&report::text(&geography, &table, screen())),
        }
    }

    /// Writes one of the outputs, which must be neither an input nor another output.
    fn write(&self, path: &Path, content: &str) -> Result<(), Failure> {
        let outputs = [&self.svg, &self.map, &self.population];
        let outputs = outputs.into_iter().flatten().filter(|other| *other != path);
        let inputs = [&self.table, &self.users].into_iter().flatten();
        let others: Vec<&Path> = inputs.chain(outputs).map(PathBuf::as_path).collect();
        let named = [&self.svg, &self.map, &self.population]
            .into_iter()
            .flatten();
        if named.filter(|other| *other == path).count() > 1 {
            return Err(named_twice(path));
        }
        Draft::beside(path, &others)?.write(|out| out.write_all(content.as_bytes()))
    }

    fn question(&self) -> Result<Question, Failure> {
        let front = self.front()?;
        let mut back = front.clone();
        for way in [&mut back.link.forward, &mut back.link.backward] {
            *way = Direction {
                rate: Some(self.origin_rate),
                ..Direction::default()
            };
        }
        // The edge is one host, with one setting.
        back.client_initcwnd = front.initcwnd;
        back.initcwnd = self.origin_initcwnd;
        Ok(Question {
            arms: self.arms.clone(),
            origin_arm: self.origin_arm.clone(),
            front,
            back,
            connections: each_once(&self.origin_connection),
            origin: self.origin.clone().unwrap_or_default(),
            edges: self.edge.clone(),
            stated: self.user_edge.clone(),
            within: self.within,
        })
    }

    fn front(&self) -> Result<Cell, Failure> {
        let cells = self.network.0.cells().map_err(Failure::Usage)?;
        match <[Cell; 1]>::try_from(cells) {
            Ok([cell]) => Ok(cell),
            Err(cells) => Err(Failure::Usage(format!(
                "these are {} networks: ask for one, each option with one value",
                cells.len()
            ))),
        }
    }
}

fn each_once(connections: &[OriginConnection]) -> Vec<OriginConnection> {
    let all = OriginConnection::ALL.into_iter();
    all.filter(|connection| connections.contains(connection))
        .collect()
}

/// The setting, where there must not be several.
fn only<'a>(geography: &'a Geography, option: &str) -> Result<&'a Setting, Failure> {
    match &geography.settings[..] {
        [setting] => Ok(setting),
        settings => Err(Failure::Usage(format!(
            "{option} takes one RTT from users to edges, and {} are stated: give --user-edge one",
            settings.len()
        ))),
    }
}

fn rtt(text: &str) -> Result<Duration, String> {
    let rtt = parse_duration(text).map_err(|error: UnitError| error.to_string())?;
    match rtt {
        Duration::ZERO => Err("nothing takes no time: state an RTT such as 15ms".to_owned()),
        rtt if rtt > Duration::from_secs(60) => Err("it is longer than 60s".to_owned()),
        rtt => Ok(rtt),
    }
}

fn window() -> impl TypedValueParser<Value = u32> {
    RangedU64ValueParser::<u32>::new().range(1..=1000)
}
