//! All ways beside each other over all networks: how much sooner or later each brings what, sorted by what was asked, with ties
//! as ties.

use std::cmp::Ordering;

use lastbyte_sizes::Message;

use super::super::text;
use super::super::thresholds::{WORTH_MS, WORTH_PART_OF_WHOLE};
use super::{Reduced, median, name};
use lastbyte_results::Metric;
use lastbyte_results::number::difference_digits;
use lastbyte_results::reduce::{Clients, Had, Ranked, Subject};

/// What changes are.
pub(super) const LEGEND: &str = "Changes are medians in ms against the whole chain on the same stacks; 0 is less than 1 % or 1 ms, and ! is later.";

/// One way, or the whole chain.
pub(super) struct Entry {
    /// What it is called.
    pub(super) name: String,
    /// What it does it to; nothing for a whole chain.
    pub(super) subject: Option<Subject>,
    /// Whether browsers have it; a whole chain, they do.
    pub(super) had: Had,
    /// Bytes of the Certificate message.
    pub(super) certificate: Option<u32>,
    /// Bytes of all that the server sends in the handshake, on the wire.
    pub(super) server: Option<u32>,
    /// The server's flights.
    pub(super) flights: Option<u32>,
    /// How each network's times change against the whole chain, in the order of networks and of [`Beside::metrics`].
    pub(super) changes: Vec<Vec<Option<Change>>>,
}

/// How much later a time is than with the whole chain.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Change {
    /// In milliseconds; below zero for sooner.
    ms: f64,
    /// Of the whole chain's.
    pub(super) share: f64,
}

impl Change {
    /// What of it is worth a word.
    fn weight(self) -> f64 {
        if self.share.abs() < WORTH_PART_OF_WHOLE || self.ms.abs() < WORTH_MS {
            0.0
        } else {
            self.share
        }
    }

    /// Whether nobody tells it from another, each of its own whole chain.
    fn is_like(self, other: Change) -> bool {
        (self.share - other.share).abs() < WORTH_PART_OF_WHOLE
            || (self.ms - other.ms).abs() < WORTH_MS
    }

    fn is_later(self) -> bool {
        self.weight() > 0.0
    }
}

/// The whole table.
pub(super) struct Beside {
    /// What networks are called.
    pub(super) networks: Vec<String>,
    /// The times that are compared.
    pub(super) metrics: Vec<Metric>,
    /// The whole chain first, then ways to send less, what was asked for first.
    pub(super) entries: Vec<Entry>,
}

impl Beside {
    pub(super) fn new(reduced: &Reduced<'_>) -> Beside {
        let tables = reduced.tables;
        let has = |metric: &Metric| {
            let mut tables = tables.iter();
            tables.any(|table| table.cell.metrics().contains(metric))
        };
        let both = [Metric::Ttfb, Metric::Ttlb];
        let metrics: Vec<Metric> = if both.iter().all(has) {
            both.to_vec()
        } else {
            vec![Metric::Handshake]
        };
        let cells: Vec<_> = tables.iter().map(|table| table.cell.clone()).collect();
        let networks = lastbyte_study::distinctions(&cells);
        let first = tables.first().into_iter().flat_map(|table| &table.ranked);
        let ready = first.filter(|ranked| ranked.clients == Clients::Ready);
        let asked = reduced.reduce.whole.first();
        let is_own = |ranked: &&Ranked<'_>| {
            ranked.way.is_some() || asked.is_some_and(|asked| ranked.arm.label == asked.label)
        };
        let mut entries: Vec<Entry> = ready
            .filter(is_own)
            .map(|ranked| Entry::new(ranked, reduced, &metrics))
            .collect();
        entries.sort_by(|one, other| one.order(other, reduced, &metrics));
        Beside {
            networks,
            metrics,
            entries,
        }
    }

    /// `first byte / last byte`: what stands beside each other in a change.
    pub(super) fn times(&self) -> String {
        let names = self.metrics.iter().map(|metric| text::metric(*metric));
        names.collect::<Vec<_>>().join(" / ")
    }

    /// Those about chains, what was asked for first.
    pub(super) fn ways(&self) -> impl Iterator<Item = &Entry> {
        self.about(Subject::Chain)
    }

    /// Those of this subject, what was asked for first.
    pub(super) fn about(&self, subject: Subject) -> impl Iterator<Item = &Entry> {
        let entries = self.entries.iter();
        entries.filter(move |entry| entry.subject == Some(subject))
    }
}

impl Entry {
    fn new(ranked: &Ranked<'_>, reduced: &Reduced<'_>, metrics: &[Metric]) -> Entry {
        let changes = reduced.tables.iter().map(|table| {
            let mut all = table.ranked.iter();
            let own = all.find(|other| {
                other.arm.label == ranked.arm.label && other.clients == ranked.clients
            });
            let of = |metric: &Metric| {
                let own = own?;
                let before = median(own.whole, *metric)?.as_secs_f64();
                let after = median(own.summary, *metric)?.as_secs_f64();
                (before > 0.0).then(|| Change {
                    ms: 1e3 * (after - before),
                    share: (after - before) / before,
                })
            };
            metrics.iter().map(of).collect()
        });
        let wire = ranked.summary.wire.as_ref();
        Entry {
            name: name(ranked),
            subject: ranked.way.map(|way| way.reduction.subject),
            had: ranked.way.map_or(Had::Today, |way| way.reduction.had),
            certificate: wire.map(|wire| wire.bytes(Message::Certificate).median),
            server: wire.map(|wire| wire.server_wire_bytes().median),
            flights: wire.and_then(|wire| Some(wire.server_flights?.flights)),
            changes: changes.collect(),
        }
    }

    /// The whole chain first, then ways by what was asked for, those that nobody can tell apart by their bytes.
    fn order(&self, other: &Entry, reduced: &Reduced<'_>, metrics: &[Metric]) -> Ordering {
        let key = |entry: &Entry| match entry.subject {
            None => 0,
            Some(Subject::Chain) => 1,
            Some(Subject::Session) => 2,
        };
        let gains = [self, other].map(|entry| entry.score(reduced, metrics));
        let [[one, sum], [other_one, other_sum]] = gains;
        (key(self).cmp(&key(other)))
            .then(one.total_cmp(&other_one))
            .then(sum.total_cmp(&other_sum))
            .then(self.server.cmp(&other.server))
    }

    /// What was asked for, over all networks, the less the better: the worse of it, and then the sum.
    fn score(&self, reduced: &Reduced<'_>, metrics: &[Metric]) -> [f64; 2] {
        let asked = reduced.by.metrics();
        let weight = self.changes.iter().map(|changes| {
            let known = metrics.iter().zip(changes);
            let counted = known.filter(|(metric, _)| {
                // Without a response, the handshake is all there is.
                **metric == Metric::Handshake || asked.contains(metric)
            });
            // A transfer of nothing has no first byte: that is neither a gain nor a cost.
            let weight = counted.filter_map(|(_, change)| change.map(Change::weight));
            weight.collect::<Vec<f64>>()
        });
        let weight: Vec<Vec<f64>> = weight.collect();
        let worse = weight
            .iter()
            .map(|weight| weight.iter().copied().reduce(f64::max).unwrap_or(0.0));
        let all = weight.iter().flatten();
        [worse.sum::<f64>(), all.sum()]
    }

    /// Whether it gains as much as another way of all that was asked for, over each network.
    pub(super) fn is_as_good(
        &self,
        other: &Entry,
        reduced: &Reduced<'_>,
        metrics: &[Metric],
    ) -> bool {
        let asked = reduced.by.metrics();
        let pairs = self.changes.iter().zip(&other.changes);
        let mut pairs = pairs.flat_map(|(own, other)| metrics.iter().zip(own).zip(other));
        pairs.all(|((metric, own), other)| match (own, other) {
            (Some(own), Some(other)) => {
                own.is_like(*other) || (*metric != Metric::Handshake && !asked.contains(metric))
            }
            (own, other) => own == other,
        })
    }

    /// Whether it brings anything that was asked for sooner, and nothing of that later.
    pub(super) fn gains(&self, reduced: &Reduced<'_>, metrics: &[Metric]) -> bool {
        let [worse, sum] = self.score(reduced, metrics);
        worse <= 0.0 && sum < 0.0
    }

    /// Whether this metric comes sooner with it, anywhere.
    pub(super) fn is_sooner(&self, place: usize) -> bool {
        let changes = self.changes.iter();
        let mut known = changes.filter_map(|changes| *changes.get(place)?);
        known.any(|change| change.weight() < 0.0)
    }

    /// Whether anything comes later with it, anywhere.
    pub(super) fn costs(&self) -> bool {
        let mut changes = self.changes.iter().flatten().flatten();
        changes.any(|change| change.is_later())
    }

    /// The most that it costs a time, with the network.
    pub(super) fn worst(&self, beside: &Beside) -> Option<(Metric, String, Change)> {
        let networks = beside.networks.iter().zip(&self.changes);
        let all = networks.flat_map(|(network, changes)| {
            let changes = beside.metrics.iter().zip(changes);
            changes.filter_map(move |(metric, change)| Some((*metric, network.clone(), (*change)?)))
        });
        let later = all.filter(|(_, _, change)| change.is_later());
        later.max_by(|(_, _, one), (_, _, other)| one.share.total_cmp(&other.share))
    }

    /// Whether nothing but the handshake is transferred over it: there is no first byte, and the last one is the handshake's.
    pub(super) fn is_handshake_alone(&self, network: usize) -> bool {
        let changes = self.changes.get(network);
        changes.is_some_and(|changes| matches!(**changes, [None, Some(_)]))
    }

    /// `-35.0 / 0`, of one network; of the handshake alone, only what is there.
    pub(super) fn change(&self, network: usize) -> String {
        let Some(changes) = self.changes.get(network) else {
            return "-".to_owned();
        };
        let known = if self.is_handshake_alone(network) {
            changes.get(1..).unwrap_or_default()
        } else {
            changes
        };
        let texts = known.iter().map(|change| match change {
            None => "-".to_owned(),
            Some(change) if change.weight() == 0.0 => "0".to_owned(),
            Some(change) => {
                let sign = if change.ms > 0.0 { "+" } else { "" };
                let mark = if change.is_later() { "!" } else { "" };
                format!("{sign}{}{mark}", difference_digits(change.ms))
            }
        });
        texts.collect::<Vec<_>>().join(" / ")
    }
}

impl std::fmt::Display for Change {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (ms, percent) = (self.ms.abs(), 100.0 * self.share.abs());
        write!(f, "{} ms ({percent:.0} %)", difference_digits(ms))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn change(ms: f64, percent: f64) -> Change {
        Change {
            ms,
            share: percent / 100.0,
        }
    }

    /// What differs by less than 1 % of the whole chain's time, or by less than 1 ms, is a tie.
    #[test]
    fn ties() {
        let best = change(-35.8, -33.2);
        assert!(best.is_like(change(-34.9, -32.4)));
        assert!(!best.is_like(change(-34.5, -32.1)));
        // Over a short round trip, more than 1 % is less than anybody feels.
        assert!(change(-2.0, -40.0).is_like(change(-1.2, -24.0)));
        assert!(!change(-2.0, -40.0).is_like(change(-0.9, -18.0)));
    }

    #[test]
    fn what_is_felt() {
        assert_eq!(change(-0.88, -5.0).weight(), 0.0);
        assert_eq!(change(3.0, 0.9).weight(), 0.0);
        assert!(change(-1.1, -1.1).weight() < 0.0);
        assert!(change(1.1, 1.1).is_later() && !change(0.9, 9.0).is_later());
    }
}
