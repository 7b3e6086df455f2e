//! Ways to send less than a whole chain, side by side: for a terminal, as JSON and as a page.

mod beside;
mod json;
mod page;
#[cfg(test)]
mod tests;
mod text;

pub use self::json::{SCHEMA, json};
pub use self::page::page;
pub use self::text::text;

use std::time::Duration;

use lastbyte_link::counted;
use lastbyte_sizes::{Message, StackName};

use beside::{Beside, Entry};

use lastbyte_explain::window_that_saves;
use lastbyte_results::number::{millisecond_digits, percent_digits};
use lastbyte_results::reduce::{By, Clients, Had, Ranked, Reduce, Subject, Table};
use lastbyte_results::{Environment, Metric, Percent, Percentile};
use lastbyte_study::Arm;

/// All that is told.
#[derive(Clone, Debug)]
pub struct Reduced<'a> {
    /// What was measured.
    pub reduce: &'a Reduce,
    /// What came of it, cell by cell.
    pub tables: &'a [Table<'a>],
    /// What ways are sorted by.
    pub by: By,
    /// The percentiles that are told.
    pub percentiles: &'a [Percentile],
    /// What to mind, in lines.
    pub warnings: &'a [String],
    /// Where it was measured.
    pub environment: &'a Environment,
    /// The command that gives the same.
    pub command: &'a str,
}

/// What columns mean.
const COLUMNS: &str = "fits up to: the largest Certificate message of a whole chain that would still fit the server's first flight if \
                    it came so, all that is sent of it grown alike; ×: that, as a multiple of what fits whole. Bytes are \
                    of the connection that succeeds; failed: what the server sent on a first one that did not; times are \
                    of both";

impl Reduced<'_> {
    /// What it comes to, over all networks: what gains most of what was asked for, with ties as ties; what costs something
    /// besides; and what would turn it.
    fn answer(&self) -> Vec<String> {
        let beside = Beside::new(self);
        let Some(own) = self.reduce.whole.first() else {
            return Vec::new();
        };
        let what = match (self.by, &*beside.metrics) {
            (_, [Metric::Handshake]) => "the handshake",
            (By::FirstByte, _) => "the first byte",
            (By::LastByte, _) => "the last byte",
            (By::Both, _) => "the first and the last byte",
        };
        let best = self.best(&beside, what, &own.name);
        let sessions = self.sessions(&beside, what);
        // What works today stands before what does not, and before what experiments have.
        let mut sentences: Vec<String> = self.window(&beside, own).into_iter().collect();
        let is_had = |entry: &Entry| entry.had == Had::Today && entry.gains(self, &beside.metrics);
        if beside.ways().any(is_had) {
            sentences.extend(best.into_iter().chain(sessions))
        } else {
            sentences.extend(sessions.into_iter().chain(best))
        }
        sentences.extend(self.cost(&beside));
        sentences
    }

    /// What would turn it: with a larger window, the whole chain saves the round trip that ways save.
    fn window(&self, beside: &Beside, own: &Arm) -> Option<String> {
        beside
            .ways()
            .find(|entry| entry.gains(self, &beside.metrics))?;
        let cells = self.tables.iter().map(|table| table.cell);
        let mut windows =
            cells.filter_map(|cell| Some((cell.initcwnd, window_that_saves(own, cell)?)));
        let (now, then) = windows.next()?;
        let unit = own.transport.packet();
        Some(format!(
            "A first window of {then} {unit}s and not {now} (--initcwnd) saves a round trip with the whole chain, and asks nothing of \
             clients (by arithmetic)."
        ))
    }

    /// What connections of clients that have been there before gain, which need no chain.
    fn sessions(&self, beside: &Beside, what: &str) -> Option<String> {
        let sessions = beside.about(Subject::Session);
        let mut gaining: Vec<&Entry> = sessions
            .filter(|entry| entry.gains(self, &beside.metrics))
            .collect();
        // What asks for least stands first: early data has to be safe to be sent twice.
        gaining.sort_by_key(|entry| entry.name.len());
        let is_had = gaining.first()?.had == Had::Today;
        let each = gaining.iter();
        let each = each.map(|entry| format!("{}, {}", entry.name, networks(beside, entry)));
        Some(format!(
            "Clients that have been there before need no chain{}, which brings {what} sooner: {}.",
            if is_had {
                ", as browsers have it today"
            } else {
                ""
            },
            each.collect::<Vec<_>>().join("; "),
        ))
    }

    /// What gains most of what browsers have, and of what experiments have, among all that is about chains.
    fn best(&self, beside: &Beside, what: &str, own: &str) -> Vec<String> {
        let of = |had: Had| {
            let gaining = beside.ways().filter(|entry| entry.had == had);
            let mut gaining = gaining.filter(|entry| entry.gains(self, &beside.metrics));
            gaining.next()
        };
        let (today, experiment) = (of(Had::Today), of(Had::Experiments));
        let none = match (today, experiment) {
            (Some(_), _) => None,
            (None, Some(_)) => Some(format!(
                "In a full handshake, no way to send less of {own} that browsers have today brings {what} sooner, by 1 % and 1 ms or more."
            )),
            (None, None) => Some(format!(
                "In a full handshake, no way to send less of {own} brings {what} sooner, by 1 % and 1 ms or more."
            )),
        };
        let of_today = today.map(|best| {
            let how = self.gain(beside, best, what);
            format!("Of ways to send less of {own} that browsers have today, {how}.")
        });
        // What is no better than what is there need not be waited for.
        let experiment = experiment.filter(|best| {
            !today.is_some_and(|today| today.is_as_good(best, self, &beside.metrics))
        });
        let of_experiments = experiment.map(|best| {
            let how = self.gain(beside, best, what);
            format!("Of those that experiments have, {how}.")
        });
        none.into_iter()
            .chain(of_today)
            .chain(of_experiments)
            .collect()
    }

    /// `MTC, landmark gains most, and brings …: …`, or which ways bring it equally.
    fn gain(&self, beside: &Beside, best: &Entry, what: &str) -> String {
        let alike = beside.ways().filter(|entry| entry.had == best.had);
        let ties = alike.filter(|entry| entry.is_as_good(best, self, &beside.metrics));
        let names: Vec<&str> = ties.map(|entry| entry.name.as_str()).collect();
        // A name may have a comma of its own.
        let named = names.join("; ");
        // Of both bytes, one may be as soon as it was.
        let is_sooner = [0, 1].map(|place| best.is_sooner(place));
        let what = match (self.by, is_sooner) {
            (By::Both, [true, false]) if beside.metrics.len() > 1 => {
                "the first byte sooner and the last byte no later"
            }
            (By::Both, [false, true]) => "the last byte sooner and the first byte no later",
            _ => &format!("{what} sooner"),
        };
        let gains = networks(beside, best);
        match names.len() {
            1 => format!("{named} gains most, and brings {what}: {gains}"),
            _ => format!("{named} bring {what}, equally to within 1 % or 1 ms: {gains}"),
        }
    }

    /// What brings something later.
    fn cost(&self, beside: &Beside) -> Option<String> {
        let costing: Vec<&Entry> = beside.ways().filter(|entry| entry.costs()).collect();
        let others = match costing.len().saturating_sub(1) {
            0 => String::new(),
            others => format!(", and {} cost some", counted(others, "other way")),
        };
        let worst = (costing.into_iter()).filter_map(|entry| Some((entry, entry.worst(beside)?)));
        let (entry, (metric, network, change)) = worst
            .max_by(|(_, (_, _, one)), (_, (_, _, other))| one.share.total_cmp(&other.share))?;
        let place = match &*network {
            "" => String::new(),
            network => format!(" over {network}"),
        };
        Some(format!(
            "{} costs the {}{place} {change}{others} (marked ! in the table): a smaller handshake opens the server's window \
             less.",
            entry.name,
            super::text::metric(metric),
        ))
    }
}

/// What an entry gains over each network: `first byte / last byte -35.0 / 0 ms over 50KiB, handshake alone -35.0 ms over 0B`.
fn networks(beside: &Beside, entry: &Entry) -> String {
    let over = |what: &str, number: usize| {
        let change = entry.change(number);
        match beside.networks.get(number).map_or("", String::as_str) {
            "" => format!("{what}{change} ms"),
            network => format!("{what}{change} ms over {network}"),
        }
    };
    let all = 0..beside.networks.len();
    let (alone, with): (Vec<usize>, Vec<usize>) =
        all.partition(|number| entry.is_handshake_alone(*number));
    let with = with.into_iter().enumerate().map(|(place, number)| {
        let times = match place {
            0 => format!("{} ", beside.times()),
            _ => String::new(),
        };
        over(&times, number)
    });
    let alone = alone
        .into_iter()
        .map(|number| over("handshake alone ", number));
    with.chain(alone).collect::<Vec<_>>().join(", ")
}

fn median(arm: &lastbyte_results::ArmSummary, metric: Metric) -> Option<Duration> {
    let measured = arm.metric(metric).percentiles.get(&Percentile::MEDIAN)?;
    measured.ok().map(|estimate| estimate.value)
}

/// What a row is called, with its server's stack where that is not the usual one.
fn name(ranked: &Ranked<'_>) -> String {
    let name = ranked.way.map_or("whole chain", |way| way.reduction.name);
    let stale = match ranked.clients {
        Clients::Ready => "",
        Clients::Stale => ", stale clients",
    };
    match ranked.arm.server_stack {
        usual if usual == StackName::default() => format!("{name}{stale}"),
        other => format!("{name}{stale} ({other})"),
    }
}

/// What is told of a row, if it is known.
type Render = Box<dyn Fn(&Ranked<'_>) -> Option<String>>;

/// A column of the table.
struct Column {
    title: String,
    /// What a row has in it.
    cell: Render,
}

impl Column {
    fn new(title: &str, cell: impl Fn(&Ranked<'_>) -> Option<String> + 'static) -> Column {
        Column {
            title: title.to_owned(),
            cell: Box::new(cell),
        }
    }

    /// A number that is not there is a dash.
    fn of(&self, ranked: &Ranked<'_>) -> String {
        (self.cell)(ranked).unwrap_or_else(|| "-".to_owned())
    }
}

/// What is sent, what it costs to compute, and what fits. What no way has has no column.
fn sizes(table: &Table<'_>) -> Vec<Column> {
    let mut columns = all_sizes();
    columns.retain(|column| {
        let mut ranked = table.ranked.iter();
        ranked.any(|ranked| (column.cell)(ranked).is_some())
    });
    columns
}

fn all_sizes() -> Vec<Column> {
    vec![
        Column::new("Certificate, B", |ranked| {
            let wire = ranked.summary.wire.as_ref()?;
            Some(wire.bytes(Message::Certificate).median.to_string())
        }),
        Column::new("server, B", |ranked| {
            Some(
                ranked
                    .summary
                    .wire
                    .as_ref()?
                    .server_wire_bytes()
                    .median
                    .to_string(),
            )
        }),
        Column::new("failed, B", |ranked| {
            let wire = ranked.summary.wire.as_ref()?;
            let failed = wire.failed_server_wire_bytes().median;
            (failed > 0).then(|| failed.to_string())
        }),
        Column::new("flights", |ranked| {
            let flights = ranked.summary.wire.as_ref()?.server_flights?;
            Some(flights.flights.to_string())
        }),
        Column::new("fits up to, B", |ranked| {
            Some(ranked.supportable?.to_string())
        }),
        Column::new("×", |ranked| Some(format!("{:.2}", ranked.multiple?))),
        Column::new("CPU, µs: client / server", |ranked| {
            let micros = |time: Duration| format!("{:.0}", time.as_secs_f64() * 1e6);
            let cpu = ranked.cpu?;
            Some(format!("{} / {}", micros(cpu.client), micros(cpu.server)))
        }),
    ]
}

/// When what happens: a column for each metric but the TCP handshake, which is the same for all.
fn times(table: &Table<'_>, percentiles: &[Percentile]) -> Vec<Column> {
    let names: Vec<_> = percentiles.iter().map(Percentile::to_string).collect();
    let metrics = table.cell.metrics().iter();
    let metrics = metrics.filter(|metric| **metric != Metric::Connect);
    let of = |metric: &Metric| {
        let (metric, percentiles) = (*metric, percentiles.to_vec());
        let title = format!("{} {}, ms", metric.name(), names.join(" / "));
        Column::new(&title, move |ranked| {
            let known = &ranked.summary.metric(metric).percentiles;
            let time = |percentile| match known.get(percentile) {
                Some(Ok(time)) => millisecond_digits(time.value),
                Some(Err(_)) | None => "-".to_owned(),
            };
            let mut times: Vec<_> = percentiles.iter().map(time).collect();
            // Where all are the same, one says it.
            if times.iter().all(|time| times.first() == Some(time)) {
                times.truncate(1);
            }
            Some(times.join(" / "))
        })
    };
    let felt = match table.metric {
        Metric::Ttfb => "ttfb than whole",
        _ => "handshake than whole",
    };
    let gain = Column::new(felt, |ranked| {
        Some(format!("{} %", percent_digits(gain(ranked)?)))
    });
    metrics.map(of).chain([gain]).collect()
}

/// How much longer the median of what matters is than that of the whole chain on the same stacks.
fn gain(ranked: &Ranked<'_>) -> Option<Percent> {
    let metric = match median(ranked.whole, Metric::Ttfb) {
        Some(_) => Metric::Ttfb,
        None => Metric::Handshake,
    };
    let [before, after] = [ranked.whole, ranked.summary].map(|arm| median(arm, metric));
    let (before, after) = (before?.as_secs_f64(), after?.as_secs_f64());
    (before > 0.0).then(|| Percent(100.0 * (after - before) / before))
}
