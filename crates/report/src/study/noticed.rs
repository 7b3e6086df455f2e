//! For whom it is noticeable: all populations of a study in one table, each time of an answer in one of its own.

use maud::{Markup, html};

use super::findings::Findings;
use crate::text;
use crate::thresholds::{MANY_NOTICE, NOTICED_WAIT, SOME_NOTICE};
use lastbyte_results::number::{difference_digits, percent, share};
use lastbyte_results::{ArmSummary, CellSummary, Estimate, Metric, Percentile, Role, Waiting};

/// What the populations of a study are to each other.
struct Populations<'a> {
    cells: Vec<&'a CellSummary>,
    /// Those that are compared with a baseline, by their names.
    arms: Vec<&'a str>,
    percentiles: &'a [Percentile],
}

/// The tables, if there is more than one population whose connections can be compared.
pub(super) fn section(findings: &Findings) -> Option<Markup> {
    let summaries = findings.summaries.iter();
    let cells = summaries.clone().flat_map(|summary| &summary.cells);
    let cells: Vec<&CellSummary> = cells
        .filter(|cell| cell.arms.iter().any(|arm| !arm.waiting.is_empty()))
        .collect();
    let mut arms: Vec<&str> = Vec::new();
    for arm in cells.iter().flat_map(|cell| &cell.arms) {
        if arm.role == Role::Compared && !arms.contains(&arm.label.as_str()) {
            arms.push(&arm.label);
        }
    }
    let first = cells.first()?;
    let baseline = first.baseline().map(|arm| arm.label.as_str())?;
    let populations = Populations {
        arms,
        percentiles: &findings.summaries.first()?.percentiles,
        cells,
    };
    if populations.cells.len() < 2 {
        return None;
    }
    let tables = html! {
        @for metric in [Metric::Ttfb, Metric::Ttlb] {
            (populations.table(metric, baseline))
        }
    };
    let all = populations.matrix(baseline);
    Some(html! {
        section {
            h2 { "For whom it is noticeable" }
            @if let Some(all) = all {
                (all)
                details {
                    summary { "How much later first and last bytes come" }
                    (tables)
                }
            } @else {
                (tables)
            }
        }
    })
}

impl Populations<'_> {
    /// Kinds of traffic against networks, where each cell is of one of both.
    fn matrix(&self, baseline: &str) -> Option<Markup> {
        let mut kinds: Vec<&str> = Vec::new();
        let mut links: Vec<&str> = Vec::new();
        for cell in &self.cells {
            let (kind, link) = (
                cell.cell.traffic.as_ref()?.name(),
                cell.cell.link_name.as_deref()?,
            );
            for (known, name) in [(&mut kinds, kind), (&mut links, link)] {
                if !known.contains(&name) {
                    known.push(name);
                }
            }
        }
        let of = |kind: &str, link: &str| {
            let mut found = self.cells.iter().filter(|cell| {
                let traffic = cell.cell.traffic.as_ref();
                traffic.is_some_and(|traffic| traffic.name() == kind)
                    && cell.cell.link_name.as_deref() == Some(link)
            });
            (found.next(), found.next())
        };
        // One that has something else besides is told in a row of its own.
        let mut places = kinds
            .iter()
            .flat_map(|kind| links.iter().map(move |link| of(kind, link)));
        if places.any(|(_, other)| other.is_some()) {
            return None;
        }
        Some(html! {
            div.scroll {
                table.answers style=(format!("--arms:{}", links.len())) {
                    caption {
                        "Connections whose " (text::metric(Metric::Ttfb)) " comes more than " (NOTICED_WAIT) " later than with "
                        bdi { (baseline) } ", each compared with itself: with the configuration of which most do, and with each."
                    }
                    thead {
                        tr {
                            th scope="col" { "traffic" }
                            @for link in &links { th scope="col" { bdi { (link) } } }
                        }
                    }
                    tbody {
                        @for kind in &kinds {
                            tr {
                                th scope="row" { bdi { (kind) } }
                                @for link in &links { (self.place(link, of(kind, link).0.copied())) }
                            }
                        }
                    }
                }
            }
        })
    }

    /// Those of one kind over one network.
    fn place(&self, link: &str, cell: Option<&CellSummary>) -> Markup {
        let arms = self.arms.iter();
        let shares = arms.filter_map(|arm| Some((*arm, noticed(cell?, arm, Metric::Ttfb)?)));
        let shares: Vec<(&str, Estimate<f64>)> = shares.collect();
        let most = shares.iter().map(|(_, share)| *share);
        let Some(most) = most.max_by(|one, other| one.value.total_cmp(&other.value)) else {
            return html! { td.absent data-of=(link) { "–" } };
        };
        html! {
            td class=(class(most)) data-of=(link) {
                b { (whole(most)) }
                // Where nobody does, nobody does with each.
                @for (arm, share) in shares.iter().filter(|_| most.value > 0.0) { small { bdi { (arm) } " " (whole(*share)) } }
            }
        }
    }

    fn table(&self, metric: Metric, baseline: &str) -> Markup {
        let names: Vec<String> = self.percentiles.iter().map(Percentile::to_string).collect();
        html! {
            div.scroll {
                table.answers style=(format!("--arms:{}", self.arms.len())) {
                    caption {
                        "Connections whose " (text::metric(metric)) " comes more than " (NOTICED_WAIT) " later than with "
                        bdi { (baseline) } ", each compared with itself. Below: how much later it comes, at " (names.join(" and "))
                        " of these differences, and the same percentiles' increase."
                    }
                    thead {
                        tr {
                            th scope="col" { (text::metric(metric)) }
                            @for arm in &self.arms { th scope="col" { bdi { (arm) } } }
                        }
                    }
                    tbody {
                        @for cell in &self.cells {
                            tr {
                                th scope="row" { (row_name(cell)) }
                                @for arm in &self.arms { (self.cell(metric, cell, arm)) }
                            }
                        }
                    }
                }
            }
        }
    }

    fn cell(&self, metric: Metric, cell: &CellSummary, name: &str) -> Markup {
        let arm = cell.arms.iter().find(|known| known.label == name);
        let found = arm.and_then(|arm| Some((arm, of(arm, metric)?)));
        let (Some((arm, waiting)), Some(noticed)) = (found, noticed(cell, name, metric)) else {
            return html! { td.absent data-of=(name) { "–" } };
        };
        let (_, interval) = share(noticed);
        html! {
            td class=(class(noticed)) data-of=(name) title=(interval) {
                b { (whole(noticed)) }
                @for percentile in self.percentiles {
                    small { (self::later(arm, waiting, metric, *percentile)) }
                }
            }
        }
    }
}

/// The share of an arm's connections that wait longer by what is noticed.
fn noticed(cell: &CellSummary, arm: &str, metric: Metric) -> Option<Estimate<f64>> {
    let arm = cell.arms.iter().find(|known| known.label == arm)?;
    let mut steps = of(arm, metric)?.slower.iter();
    let noticed = steps.find(|slower| slower.step == NOTICED_WAIT)?;
    Some(noticed.connections)
}

/// How a cell is coloured.
fn class(noticed: Estimate<f64>) -> &'static str {
    match noticed.value {
        value if value >= MANY_NOTICE => "later",
        value if value >= SOME_NOTICE => "part",
        _ => "same",
    }
}

/// `52 %`, `0 %`, and `0.4 %` of what would else be nothing.
fn whole(noticed: Estimate<f64>) -> String {
    match 100.0 * noticed.value {
        percent @ 0.05..0.95 => format!("{percent:.1} %"),
        percent => format!("{percent:.0} %"),
    }
}

/// How much longer the connections of an arm wait, whatever their class.
fn of(arm: &ArmSummary, metric: Metric) -> Option<&Waiting> {
    let mut all = arm.waiting.iter();
    all.find(|waiting| waiting.metric == metric && waiting.class.is_none())
}

/// `+59 ms, 21 %`.
fn later(arm: &ArmSummary, waiting: &Waiting, metric: Metric, percentile: Percentile) -> String {
    let Some(later) = waiting.percentiles.get(&percentile).copied().flatten() else {
        return "never".to_owned();
    };
    let sign = if later.value > 0.0 { "+" } else { "" };
    let increases = &arm.metric(metric).increases;
    let increase = match increases.get(&percentile) {
        Some(Ok(increase)) => format!(", {}", percent(increase.value)),
        Some(Err(_)) | None => String::new(),
    };
    format!("{sign}{} ms{increase}", difference_digits(later.value))
}

/// The cell by what tells it from others, in a few words.
fn row_name(cell: &CellSummary) -> String {
    match (&cell.cell.traffic, &cell.cell.link_name) {
        (Some(traffic), Some(link)) => format!("{traffic}, {link}"),
        (Some(traffic), None) => traffic.to_string(),
        (None, _) if cell.name.is_empty() => cell.cell.to_string(),
        (None, _) => cell.name.clone(),
    }
}
