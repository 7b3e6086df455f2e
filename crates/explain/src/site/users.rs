//! What another chain changes for the users of a population: by arithmetic, over the path of each.

use std::collections::HashMap;
use std::num::NonZero;
use std::path::Path;
use std::str::FromStr;
use std::time::Duration;

use lastbyte_flights::Compute;
use lastbyte_results::{Percentile, expected, stats};
use lastbyte_study::{Cell, Population, StudyError, quoted};

use super::Chain;
use crate::Explanation;
use crate::plan::usual_population;

/// Whose paths are asked for.
#[derive(Clone, Debug)]
pub struct Users {
    /// As it was asked for.
    name: String,
    population: Population,
}

/// What a plan takes for granted.
const EXAMPLE: &str = "example";
/// What a path has of a population.
pub const OF_PATHS: [&str; 2] = ["rtt", "rate"];
/// As many as are drawn: a percentile is that of so many users.
pub const USERS: u32 = 1000;
/// The percentiles that are reported.
pub const PERCENTILES: [u8; 3] = [50, 75, 95];

impl FromStr for Users {
    type Err = String;

    fn from_str(text: &str) -> Result<Users, String> {
        let path = Path::new(text);
        let population = match path.extension() {
            _ if text == EXAMPLE => usual_population("", Path::new("")).map(|(usual, _)| usual),
            _ if !path.is_file() => {
                return Err(format!(
                    "{text:?} is neither a file nor {EXAMPLE:?}, the population that lastbyte plan takes for granted: name a \
                     FILE.toml with [population], as of a study or of lastbyte zeek -o, or a table (CSV, Parquet) as of lastbyte \
                     rtt --population"
                ));
            }
            Some(toml) if toml == "toml" => Population::load(path),
            _ => Population::parse(&format!("joint = {}", quoted(text)), Path::new("")),
        };
        let population = population.map_err(|error| match error {
            // What is wrong with a table stands in no file.
            StudyError::Wrong { path, problem, .. } if path == Path::new("") => problem.to_string(),
            StudyError::Unreadable { path, error } => format!("can't read {path:?}: {error}"),
            error => error.to_string(),
        })?;
        if !OF_PATHS.iter().any(|name| draws(&population, name)) {
            return Err(format!(
                "{text:?} says nothing of the paths of its users: draw rtt or rate"
            ));
        }
        Ok(Users {
            name: text.to_owned(),
            population: Population {
                connections_per_user: NonZero::<u32>::MIN,
                listed: None,
                ..population
            },
        })
    }
}

fn draws(population: &Population, name: &str) -> bool {
    population.drawn().any(|drawn| drawn.name() == name)
}

/// What a chain is to all users.
#[derive(Clone, Debug, PartialEq)]
pub struct UserTimes {
    /// [`PERCENTILES`] of the time of the first byte of the response.
    pub first_byte: Vec<Option<Duration>>,
    /// The same of its last byte.
    pub last_byte: Vec<Option<Duration>>,
    /// The share of users whose handshake waits longer for acknowledgements than with the first chain.
    pub beyond: f64,
    /// The share of users over whose paths arithmetic does not go as far as the last byte: their times are only near.
    pub near: f64,
}

/// What happens on the path of one user.
struct PathTimes {
    first_byte: Option<Duration>,
    last_byte: Duration,
    /// What of the handshake is the server's waiting for its window: none where the path is still full meanwhile.
    waits: Duration,
    extent: Extent,
}

/// How far arithmetic goes.
#[derive(Clone, Copy, PartialEq)]
enum Extent {
    Whole,
    /// Linux sends something twice, say, which is left out.
    Part,
}

impl Users {
    /// What these chains are to users who have the paths of the population in the place of the measured one, in the order of
    /// the chains. What the population is silent about is as measured.
    pub fn times(&self, measured: &Cell, chains: &[(&Chain, Explanation)]) -> Vec<UserTimes> {
        let (paths, users) = self.paths(measured);
        let mut first: Vec<Duration> = Vec::new();
        let times_of_all = chains.iter().map(|(_, explanation)| {
            let times: Vec<PathTimes> = paths
                .iter()
                .map(|path| path_times(explanation, path))
                .collect();
            if first.is_empty() {
                first = times.iter().map(|times| times.waits).collect();
            }
            let later = |path: &&usize| {
                let waits = times.get(**path).map(|times| times.waits);
                waits.as_ref() > first.get(**path)
            };
            let share = |is: &dyn Fn(&&usize) -> bool| {
                users.iter().filter(is).count() as f64 / users.len().max(1) as f64
            };
            let percentiles = |time: &dyn Fn(&PathTimes) -> Option<Duration>| {
                let of_user = users.iter().map(|path| times.get(*path).and_then(time));
                let known: Vec<Percentile> = PERCENTILES
                    .into_iter()
                    .filter_map(Percentile::new)
                    .collect();
                stats::measured(&(0..).zip(of_user).collect(), &known)
            };
            UserTimes {
                first_byte: percentiles(&|times| times.first_byte),
                last_byte: percentiles(&|times| Some(times.last_byte)),
                beyond: share(&later),
                near: share(&|path| {
                    let times = times.get(**path);
                    times.is_some_and(|times| times.extent == Extent::Part)
                }),
            }
        });
        times_of_all.collect()
    }

    /// The paths that there are, and which of them each user has.
    fn paths(&self, measured: &Cell) -> (Vec<Cell>, Vec<usize>) {
        let mut paths = Vec::new();
        let mut known = HashMap::new();
        let users = (0..USERS).map(|user| {
            let mut draw = self.population.draw(user);
            draw.values.retain(|(parameter, _)| parameter.is_of_link());
            let values = draw.values.iter();
            let values: Vec<_> = values
                .map(|(parameter, value)| (parameter.name(), value.clone()))
                .collect();
            *known.entry(values).or_insert_with(|| {
                let mut path = measured.with(&draw);
                path.link = path.link.without_luck();
                paths.push(path);
                paths.len() - 1
            })
        });
        let users = users.collect();
        (paths, users)
    }

    /// As it was asked for.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Whether they draw a parameter of this name.
    pub fn draws(&self, name: &str) -> bool {
        draws(&self.population, name)
    }

    /// Whom they are drawn from.
    pub fn population(&self) -> &Population {
        &self.population
    }
}

fn path_times(explanation: &Explanation, path: &Cell) -> PathTimes {
    /// No handshake fills it.
    const UNBOUND: u32 = 1_000_000;
    let over = |path: &Cell| {
        let record_size = explanation.arm.record_size;
        expected(&explanation.exchange, path, record_size, Compute::default())
    };
    let timeline = over(path);
    let unbound = over(&Cell {
        initcwnd: UNBOUND,
        // All of the handshake is done by then.
        data: lastbyte_link::Bytes(0),
        ..path.clone()
    });
    PathTimes {
        first_byte: timeline.ttfb,
        last_byte: timeline.ttlb,
        extent: match timeline.beyond(timeline.ttlb) {
            None => Extent::Whole,
            Some(_) => Extent::Part,
        },
        waits: timeline.handshake.saturating_sub(unbound.handshake),
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use lastbyte_exchange::HandshakeFlight;
    use lastbyte_link::{ETHERNET_HEADER, Rate};
    use lastbyte_probe::Document;
    use lastbyte_sizes::framing::MSS;

    use super::super::{explained, measured, one_certificate};
    use super::*;

    /// Of an IP header and a TCP header with timestamps.
    const HEADERS: usize = 52 + ETHERNET_HEADER;

    fn users(population: &str) -> Users {
        let population = Population::parse(population, Path::new("")).unwrap();
        Users {
            name: "users.toml".to_owned(),
            population,
        }
    }

    fn chain(certificate: usize) -> Chain {
        one_certificate(&certificate.to_string(), certificate)
    }

    fn ms(time: Option<Duration>) -> f64 {
        time.unwrap().as_secs_f64() * 1e3
    }

    /// Of 100 users, 60 have 100 ms and 1 Gbit/s, and the others 10 ms and 1 Mbit/s. The window is of four segments, and
    /// the other chain takes more.
    #[test]
    fn a_population_by_hand() {
        let document = r#"{"version": 1, "host": "server.example:443", "chain": [], "rtt_ms": 50, "mss": 1448,
            "initial_window": 4, "response": {"status": 200, "wire_bytes": 400000, "first_record_wire_bytes": 300}}"#;
        let document = Document::read(document).unwrap();
        let path = measured(
            &document,
            Rate::from_bits_per_second(1_000_000_000).unwrap(),
        );
        let chains = [chain(1000), chain(6000)];
        let explained: Vec<_> = chains
            .iter()
            .map(|chain| (chain, explained(&document, chain, &[]).unwrap()))
            .collect();
        let users = users(
            "joint = { rtt = [\"100ms\", \"10ms\"], rate = [\"1gbit\", \"1mbit\"], weight = [60, 40] }",
        );
        let [today, other] = users.times(&path, &explained).try_into().unwrap();
        assert_eq!(today.beyond, 0.0);
        assert!((other.beyond - 0.6).abs() < 0.002, "{other:?}");

        let [today_bytes, bytes] = [0, 1].map(|number: usize| {
            let (_, explanation) = &explained[number];
            explanation.exchange.carried(HandshakeFlight::Server) as usize
        });
        let [today_segments, segments] = [today_bytes, bytes].map(|bytes| bytes.div_ceil(MSS));
        assert!(today_segments <= 4 && segments > 4);
        let more = (bytes - today_bytes + (segments - today_segments) * HEADERS) as f64;
        // Of bits, at 1 Gbit/s and 1 Mbit/s.
        let [fast, slow] = [8e-6 * more, 8e-3 * more];
        // The fifth segment leaves when the first of four is acknowledged.
        let waits = 100.0 + 8e-6 * (HEADERS as f64 - 3.0 * (MSS + HEADERS) as f64);
        for place in 0..3 {
            // Those with a short path have their first byte before all others.
            let later = ms(other.first_byte[place]) - ms(today.first_byte[place]);
            assert!((later - fast - waits).abs() < 0.01, "{place}: {later}");
        }
        for place in 1..3 {
            // And their last byte behind them.
            let later = ms(other.last_byte[place]) - ms(today.last_byte[place]);
            assert!((later - slow).abs() < 0.01, "{place}: {later} and {slow}");
        }
        assert!(ms(today.last_byte[1]) > 8.0 * 400.0 && ms(today.last_byte[0]) < 1500.0);
    }

    /// What a population says nothing of is as it was measured, and what is luck is left out.
    #[test]
    fn what_is_not_drawn_is_as_measured() {
        let document = r#"{"version": 1, "host": "server.example:443", "chain": [], "rtt_ms": 50}"#;
        let document = Document::read(document).unwrap();
        let path = measured(&document, Rate::from_bits_per_second(20_000_000).unwrap());
        let users = users("rtt = \"80ms\"\nloss = \"2%\"\ndata = \"1MiB\"\nresumes = \"46%\"");
        let (paths, of_users) = users.paths(&path);
        let [of_all] = paths.try_into().unwrap();
        assert_eq!(of_users, vec![0; USERS as usize]);
        assert_eq!(of_all.link.rtt(), Duration::from_millis(80));
        assert_eq!(of_all.link.backward.rate, path.link.backward.rate);
        assert!(!of_all.has_loss() && of_all.data == path.data);
        let is_drawn = OF_PATHS.map(|name| users.draws(name));
        assert_eq!(is_drawn, [true, false]);
    }

    #[test]
    fn what_is_no_population_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let refused = |name: &str, text: &str| {
            let file = folder.path().join(name);
            std::fs::write(&file, text).unwrap();
            file.to_str().unwrap().parse::<Users>().unwrap_err()
        };
        for (name, text, expected) in [
            ("a.toml", "name = \"x\"\n", "missing \"population\""),
            (
                "b.toml",
                "[population]\nrtt = 7\n",
                "b.toml:2: missing unit",
            ),
            (
                "c.toml",
                "[population]\ndata = \"1KiB\"\n",
                "draw rtt or rate",
            ),
            ("d.toml", "[population", "d.toml:1: not TOML"),
            ("e.csv", "rtt_ms,weight\n10\n", "line 2"),
            ("f.csv", "a,b\n1,2\n", "column \"a\""),
            ("g.csv", "", "g.csv"),
            ("h.json", "{}", "h.json"),
        ] {
            let line = refused(name, text);
            assert!(
                line.contains(expected) && !line.contains('\n'),
                "{name}: {line}"
            );
        }
        let unknown = "exampel".parse::<Users>().unwrap_err();
        assert!(
            unknown.contains("\"exampel\" is neither a file nor \"example\""),
            "{unknown}"
        );
        let example: Users = EXAMPLE.parse().unwrap();
        assert!(draws(&example.population, "rate"));
    }

    /// A study has its population among much else.
    #[test]
    fn a_study_is_a_file_with_a_population() {
        let study = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../studies/users.toml");
        let users: Users = study.to_str().unwrap().parse().unwrap();
        let example: Users = EXAMPLE.parse().unwrap();
        assert_eq!(users.population, example.population);
    }
}
