//! What a chain will cost the users of a site, told: in a terminal, as JSON, and as a page.

mod json;
mod page;
#[cfg(test)]
mod tests;
mod text;

pub use self::json::{SCHEMA, json};
pub use self::page::page;
pub use self::text::{first, text};

use lastbyte_link::{Probability, counted};

use lastbyte_explain::Explanation;
use lastbyte_explain::plan::{About, Because, Gain, Lever, Plan, Tale, Transports, Usual};
use lastbyte_flights::quic::Hold;
use lastbyte_results::number::{self, difference_digits, interval};
use lastbyte_results::{Environment, Estimate, Percentile, Slower, Step, Waiting};
use lastbyte_study::TransportName;

use super::assumed::{capital, conditions};
use super::text::{UNCERTAIN, metric};
use super::thresholds::{AS_MUCH, NOTICEABLE, WORTH_SHARE};
use super::waiting::{Waits, both};

/// All that is told.
#[derive(Clone, Debug)]
pub struct Planned<'a> {
    /// What was measured.
    pub plan: &'a Plan,
    /// What it tells.
    pub tale: &'a Tale,
    /// What it comes to where some connections are over QUIC, if that is asked.
    pub transports: Option<&'a Transports>,
    /// The percentiles of differences that are told.
    pub percentiles: &'a [Percentile],
    /// What was taken for granted.
    pub usual: &'a [Usual],
    /// Whose connections they are: the profile and tables that were given.
    pub sources: &'a [String],
    /// What to mind, in lines.
    pub warnings: &'a [String],
    /// What arithmetic says of the chain of today and of the planned one, where it knows them.
    pub explained: Option<[&'a Explanation; 2]>,
    /// Where it comes from.
    pub origin: Origin<'a>,
    /// The command that gives the same.
    pub command: &'a str,
}

/// Where the numbers of a plan come from.
#[derive(Clone, Copy, Debug)]
pub enum Origin<'a> {
    /// They were measured there.
    Measured(&'a Environment),
    /// They are arithmetic, which is all that can be had here, or all there is yet: the reason.
    Arithmetic(&'a str),
}

impl Planned<'_> {
    /// All connections, as planned.
    fn all(&self) -> Option<&Waiting> {
        self.tale.planned.first()
    }

    /// Who waits, and how long: all connections, and then each class.
    fn waits(&self) -> Vec<Waits> {
        let named = |waiting: &Waiting| match &waiting.class {
            None => ("all".to_owned(), waiting.clone()),
            Some(class) => (class.clone(), waiting.clone()),
        };
        let rows: Vec<_> = self.tale.planned.iter().map(named).collect();
        both(
            self.tale.metric,
            None,
            &self.plan.today.name,
            &rows,
            self.percentiles,
        )
    }

    /// How long those over TCP wait, those over QUIC, and all together.
    fn waits_by_transport(&self) -> Vec<Waits> {
        let Some(transports) = self.transports else {
            return Vec::new();
        };
        let each = transports.of_each.iter();
        let each = each.map(|(transport, waiting)| (over(*transport), waiting.clone()));
        let rows: Vec<_> = [("together".to_owned(), transports.all.clone())]
            .into_iter()
            .chain(each)
            .collect();
        let mut tables = both(
            self.tale.metric,
            None,
            &self.plan.today.name,
            &rows,
            self.percentiles,
        );
        for table in &mut tables {
            table.title = format!("by transport, by arithmetic: {}", table.title);
        }
        tables
    }

    /// Who waits over which transport, in a sentence.
    fn by_transport(&self) -> Option<String> {
        let transports = self.transports?;
        let waiting =
            |waiting: &Waiting| share_alone(slower(waiting, NOTICEABLE).connections.value);
        let each = transports.of_each.iter();
        let each = each.map(|(transport, of)| format!("{} {}", over(*transport), waiting(of)));
        let each: Vec<String> = each.collect();
        Some(format!(
            "All of this is over TCP. With {} of connections over QUIC, by arithmetic, {} of all wait more than {NOTICEABLE} longer ({}).",
            spaced(transports.quic_share),
            waiting(&transports.all),
            each.join(", "),
        ))
    }

    /// Who waits, in a sentence, with how many are asked for a chain at all.
    fn verdict(&self) -> Option<String> {
        let all = self.all()?;
        let resumed = self.tale.causes.first().filter(|cause| cause.resumed > 0);
        let resumed = resumed.map(|cause| {
            let share = f64::from(cause.resumed) / f64::from(cause.connections.max(1));
            format!(
                " ({:.0} % of them resume, and need no chain)",
                100.0 * share
            )
        });
        Some(format!(
            "With {} in place of {}, {} of connections{} wait more than {NOTICEABLE} longer for their {}{}; {} wait at least a \
             round trip longer.",
            self.plan.planned.arm.name,
            self.plan.today.arm.name,
            share(slower(all, NOTICEABLE).connections),
            resumed.unwrap_or_default(),
            metric(self.tale.metric),
            self.of_each_class().unwrap_or_default(),
            share(slower(all, Step::RoundTrips(1)).connections),
        ))
    }

    /// ` (fibre 0.0 %, lte 56.1 %)`: how many of each class, as those of all may be of one alone; where they are few enough to name.
    fn of_each_class(&self) -> Option<String> {
        const NAMED: std::ops::RangeInclusive<usize> = 2..=4;
        let planned = self.tale.planned.iter();
        let classes = planned.filter_map(|waiting| Some((waiting.class.as_ref()?, waiting)));
        let classes = classes.map(|(class, waiting)| {
            let share = slower(waiting, NOTICEABLE).connections.value;
            format!("{class} {}", share_alone(share))
        });
        let classes: Vec<String> = classes.collect();
        (NAMED.contains(&classes.len())).then(|| format!(" ({})", classes.join(", ")))
    }

    /// Where the answer comes from, if nothing was measured.
    fn by_arithmetic(&self) -> Option<String> {
        match self.origin {
            Origin::Measured(_) => None,
            Origin::Arithmetic(reason) => Some(format!(
                "By arithmetic, over links that lose nothing ({reason}):"
            )),
        }
    }

    /// What it comes to, in sentences.
    fn answer(&self) -> Vec<String> {
        let (Some(all), Some(verdict)) = (self.all(), self.verdict()) else {
            return vec!["No connection was measured.".to_owned()];
        };
        let slower = slower(all, NOTICEABLE);
        let mut sentences: Vec<String> = self.by_arithmetic().into_iter().collect();
        sentences.push(verdict);
        sentences.extend(self.because());
        sentences.extend(self.supposed());
        sentences.push(match all.mean {
            Some(mean) => {
                let is_none = mean.interval.holds_zero();
                let (mean, longer) = if mean.value < 0.0 {
                    (mean.negated(), "less")
                } else {
                    (mean, "longer")
                };
                let each = format!("each waits {} ms {longer}", estimate(mean));
                if is_none {
                    format!(
                        "In the mean, no difference was shown: {each}, an interval that holds zero."
                    )
                } else {
                    format!(
                        "In the mean, {each}; a million connections together wait {} {longer}.",
                        hours(mean.map(|mean| mean * 1e6))
                    )
                }
            }
            None => {
                "How long they wait together is not known, since connections failed.".to_owned()
            }
        });
        sentences.push(self.remedy(all.mean, slower.connections.value));
        sentences.extend(self.by_transport());
        sentences
    }

    /// What wins back most of what is lost, among all that is about certificates.
    fn remedy(&self, lost: Option<Estimate<f64>>, waiting: f64) -> String {
        let is_shown = |time: &Estimate<f64>| time.interval.low.is_some_and(|low| low > 0.0);
        let Some(lost) = lost.filter(is_shown) else {
            return "No time was shown to be lost in the mean, so there is nothing to win back."
                .to_owned();
        };
        let levers = self.about(About::Certificates);
        let marked = levers.filter_map(|(lever, gain)| {
            Some((
                *lever,
                gain.mean()?,
                self::slower(&gain.than_today, NOTICEABLE),
            ))
        });
        let levers: Vec<_> = marked.filter(|(_, mean, _)| is_shown(mean)).collect();
        let Some((_, most, _)) = levers.first() else {
            return "Nothing that is about certificates was shown to win any of it back."
                .to_owned();
        };
        // Those that nobody can tell apart: what a server sets itself is worth its numbers, what clients must know of its name.
        let best = levers
            .iter()
            .filter(|(_, mean, _)| mean.value >= AS_MUCH * most.value);
        let (ways, own): (Vec<_>, Vec<_>) = best.partition(|(lever, ..)| lever.asks_clients());
        let told = |(lever, mean, left): &&(&Lever, Estimate<f64>, Slower)| {
            let words = lever.words(&self.plan.planned, &self.plan.amounts);
            let words = if lever.is_reduction() {
                format!("{} ({words})", lever.name)
            } else {
                words
            };
            format!(
                "{words}, {} ms ({} still wait more than {NOTICEABLE} longer than today)",
                estimate(*mean),
                share(left.connections),
            )
        };
        // Only ways that clients must know of: the first of them has its numbers.
        let (numbered, named) = if own.is_empty() {
            ways.split_at(ways.len().min(1))
        } else {
            (own.as_slice(), ways.as_slice())
        };
        let name = |(lever, ..): &&(&Lever, Estimate<f64>, Slower)| {
            if numbered.is_empty() {
                lever.words(&self.plan.planned, &self.plan.amounts)
            } else {
                lever.name.to_owned()
            }
        };
        let numbers: Vec<String> = numbered.iter().map(told).collect();
        let names: Vec<String> = named.iter().map(name).collect();
        let names = match &*names {
            [] => String::new(),
            names => format!(
                "; so {}, which clients must know: {}",
                if names.len() == 1 { "does" } else { "do" },
                names.join("; ")
            ),
        };
        let part = match 100.0 * most.value / lost.value {
            105.0.. => " more than that".to_owned(),
            95.0.. => " nearly all of that".to_owned(),
            part => format!(" {part:.0} % of that"),
        };
        let each = match numbers.len() + named.len() {
            1 => "this alone wins",
            _ => "each of these alone wins",
        };
        let left = numbered.iter().map(|(_, _, left)| left.connections.value);
        // A packet that is lost at another time costs another connection.
        let others = if left.fold(0.0, f64::max) > waiting {
            " Some of those are others than without it: where packets are lost, another connection is hit."
        } else {
            ""
        };
        format!(
            "Of what is about certificates, {each} back{part}: {}{names}.{others}",
            numbers.join("; "),
        )
    }

    /// Why they wait.
    fn because(&self) -> Option<String> {
        let all = self.tale.causes.first()?;
        let fits = self.fits();
        let count = |(because, count): (&Because, &u32)| {
            if *count == all.all() {
                format!("all {}", because_of(*because))
            } else {
                format!("{count} {}", because_of(*because))
            }
        };
        let counts: Vec<String> = all.waiting.iter().map(count).collect();
        let waiting = match &*counts {
            [] => format!("nobody waits more than {NOTICEABLE} longer"),
            counts => format!(
                "of {} connections, {} wait more than {NOTICEABLE} longer: {}",
                all.connections,
                all.all(),
                counts.join(", ")
            ),
        };
        Some(match fits {
            Some(fits) => format!("{fits}: {waiting}."),
            None => format!("{}.", capital(&waiting)),
        })
    }

    /// How the planned chain fits the window, beside that of today.
    fn fits(&self) -> Option<String> {
        let [today, planned] = self.explained?;
        let (today, planned) = (today.windows.first()?, planned.windows.first()?);
        let (before, flights) = (today.edges.flights, planned.edges.flights);
        let window = planned.cell.initcwnd;
        Some(match (planned.edges.below, planned.edges.above) {
            (Some(below), _) if flights > before => format!(
                "The server's handshake takes {flights} flights and not {before}, as the chain is {} too large for {}",
                counted(below.certificate_distance, "byte"),
                match below.held {
                    Some(Hold::Credit) =>
                        "what the server may send before it knows that the client's address is true"
                            .to_owned(),
                    _ => format!("a window of {window}"),
                }
            ),
            (_, Some(above)) => format!(
                "The server's handshake takes {} with a window of {window}, as today, and {} are left",
                counted(flights, "flight"),
                counted(above.certificate_distance, "byte")
            ),
            _ => format!(
                "The server's handshake takes {} with a window of {window}",
                counted(flights, "flight")
            ),
        })
    }

    /// What the share would be if something about the chain were otherwise: a sentence of all that turns it.
    fn supposed(&self) -> Option<String> {
        let calculated = self.tale.planned_by_arithmetic.as_ref()?;
        let waiting = slower(calculated, NOTICEABLE).connections.value;
        let supposed = self.tale.supposed.iter();
        let supposed = supposed
            .map(|(what, then)| (what.as_str(), slower(then, NOTICEABLE).connections.value));
        let turned = supposed.filter(|(_, then)| (then - waiting).abs() >= WORTH_SHARE);
        let turned = conditions(turned.map(|(what, then)| (what, share_alone(then))))?;
        Some(format!("{turned} would wait so long (by arithmetic)."))
    }

    /// Levers that can't be pulled, with the reason: a line each.
    fn unavailable(&self) -> impl Iterator<Item = String> {
        let unavailable = self.plan.unavailable.iter();
        unavailable.map(|(lever, reason)| {
            let mut calculated = self.tale.calculated.iter();
            if calculated.any(|(marked, _)| marked == lever) {
                format!("{} is not measured here: {reason}", lever.name)
            } else {
                format!("{} can't be pulled: {reason}", lever.name)
            }
        })
    }

    /// Levers of one kind, what gains most first.
    fn about(&self, about: About) -> impl Iterator<Item = &(&'static Lever, Gain)> {
        let levers = self.tale.levers.iter();
        levers.filter(move |(lever, _)| lever.about == about)
    }

    /// Levers about certificates alone, and then together; those that are arithmetic here; those about paths.
    fn gains(&self) -> impl Iterator<Item = (String, &Gain)> {
        let named = |lever: &Lever| {
            let words = lever.words(&self.plan.planned, &self.plan.amounts);
            if lever.is_reduction() {
                format!("{}: {words}", lever.name)
            } else {
                words
            }
        };
        let alone = self
            .about(About::Certificates)
            .map(move |(lever, gain)| (named(lever), gain));
        let together = self.tale.together.iter();
        let together = together.map(|gain| (gain.name.clone(), gain));
        let calculated = self.tale.calculated.iter();
        let calculated = calculated
            .map(move |(lever, gain)| (format!("{} (by arithmetic)", named(lever)), gain));
        let paths = self.about(About::Paths);
        let paths =
            paths.map(move |(lever, gain)| (format!("whatever the chain, {}", named(lever)), gain));
        alone.chain(together).chain(calculated).chain(paths)
    }
}

/// `12 for an acknowledgement`, `1 for packets that were lost`.
fn because_of(because: Because) -> &'static str {
    match because {
        Because::Acknowledgement => "for an acknowledgement",
        Because::Loss => "for packets that were lost",
        Because::Sending => "for a link that takes so long to carry the bytes",
    }
}

/// `over QUIC`.
fn over(transport: TransportName) -> String {
    format!("over {}", transport.protocol())
}

/// `40 %`.
fn spaced(share: Probability) -> String {
    share.to_string().replace('%', " %")
}

/// `39.0 %`, of what is arithmetic.
fn share_alone(share: f64) -> String {
    format!("{:.1} %", 100.0 * share)
}

fn slower(waiting: &Waiting, step: Step) -> Slower {
    let mut all = waiting.slower.iter();
    let nothing = Estimate {
        value: 0.0,
        interval: lastbyte_results::Interval {
            low: None,
            high: None,
        },
    };
    all.find(|slower| slower.step == step)
        .copied()
        .unwrap_or(Slower {
            step,
            connections: nothing,
            users: nothing,
        })
}

/// `11.4 % [11.2, 11.6]`.
fn share(share: Estimate<f64>) -> String {
    let (share, interval) = number::share(share);
    format!("{share} {interval}")
}

/// `3.1 [2.9, 3.3]`, in milliseconds.
fn estimate(time: Estimate<f64>) -> String {
    format!(
        "{} {}",
        difference_digits(time.value),
        interval(&time.interval, difference_digits)
    )
}

/// The same, marked where it may as well be nothing.
fn marked(time: Option<Estimate<f64>>) -> String {
    time.map_or_else(
        || "not known".to_owned(),
        |time| {
            if time.interval.holds_zero() {
                format!("{UNCERTAIN}{}", estimate(time))
            } else {
                estimate(time)
            }
        },
    )
}

/// `8.3 hours [7.8, 8.9]`, of milliseconds.
fn hours(ms: Estimate<f64>) -> String {
    let (unit, name) = match ms.value.abs() / 60_000.0 {
        120.0.. => (3.6e6, "hours"),
        2.0.. => (6e4, "minutes"),
        _ => (1e3, "seconds"),
    };
    let digits = |ms: f64| format!("{:.1}", ms / unit);
    let interval = interval(&ms.interval, digits);
    format!("{} {name} {interval}", digits(ms.value))
}

/// What [`UNCERTAIN`] means, if it was used in what is `shown`.
fn legend(shown: &str) -> Option<String> {
    let is_used = shown.contains(UNCERTAIN);
    is_used.then(|| format!("{UNCERTAIN} no difference was shown: its interval holds zero"))
}
