//! A search on the page of a study.

use maud::{Markup, html};

use super::{cell_names, headline, missed, on_wire, place, rows, verdict};
use crate::chart::{Axes, Chart, Ink, KeyEntry, Panel, StepLine, Steps};
use crate::escape::csv_field;
use crate::text::{self, grouped};
use lastbyte_explain::search::{Edges, Found, Searched, implied};
use lastbyte_study::{Cell, Parameter, PublishedEdges, Search};

/// What a search found: panels, edges, and what is published.
pub(in super::super) fn section(searched: &Searched) -> Markup {
    let found = searched.found();
    let search = &searched.search;
    html! {
        section.figure id=(format!("search-{}", search.id)) {
            h2 { (title(search)) }
            p.caption { (headline(searched)) ". " (READING) }
            p.answer { (verdict(searched, &found)) "." }
            (chart(searched, &found).html())
            @for problem in &searched.problems { p.warning { "Not to be trusted: " (problem) } }
            (table(searched, &found))
            @for published in &search.published { (beside(searched, published)) }
        }
    }
}

/// Where the first network's first edges are, for each arm: `ecdsa costs a round trip more beyond 13,034 bytes of
/// Certificate, ml-dsa-44 beyond 10,685 (initcwnd 10)`.
pub(in super::super) fn answer(searched: &Searched) -> Option<String> {
    let found = searched.found();
    let below = |found: &Found| match &found.edges {
        Edges::Exact(edges) => Some(edges.first()?.below.certificate),
        Edges::Told(_) => None,
    };
    let first = found.iter().find(|found| below(found).is_some())?;
    let arms = &searched.search.experiment.arms;
    let of_cell = found.iter().filter(|found| found.cell == first.cell);
    let edges = of_cell.filter_map(|found| Some((&arms.get(found.arm)?.name, below(found)?)));
    let edges = edges.enumerate().map(|(index, (name, bytes))| match index {
        0 => format!(
            "{name} takes a round trip more beyond {} bytes of certificates",
            grouped(bytes)
        ),
        _ => format!("{name} beyond {}", grouped(bytes)),
    });
    let cell = searched.search.experiment.cells.get(first.cell)?;
    let window = Parameter::INITCWND.describe(cell);
    Some(format!(
        "{} ({window}).",
        edges.collect::<Vec<_>>().join(", ")
    ))
}

/// The drawing.
pub(in super::super) fn chart(searched: &Searched, found: &[Found]) -> Chart {
    let search = &searched.search;
    let panel = |(cell, title): (usize, String)| Panel {
        drawing: Box::new(drawing(searched, found, cell)),
        title,
    };
    let key = (search.experiment.arms.iter().enumerate()).map(|(index, arm)| KeyEntry {
        name: arm.name.clone(),
        ink: Ink::nth(index),
    });
    Chart {
        title: title(search),
        panels: shown(searched, found).into_iter().map(panel).collect(),
        key: key.collect(),
        // Networks of 10 and 600 ms are flat on one axis.
        axes: Axes::Own,
        has_theirs: !search.published.is_empty(),
    }
}

/// What is drawn, as CSV.
pub(in super::super) fn numbers(searched: &Searched, found: &[Found]) -> String {
    let mut csv = ::csv::Writer::from_writer(Vec::new());
    // Writing to memory cannot fail.
    let _ = csv.write_record(["network", "configuration", "certificate_bytes", "median_ms"]);
    let names = cell_names(searched);
    for found in found {
        let arm = place(searched, found).map_or("", |(arm, _)| &*arm.name);
        let cell = names.get(found.cell).map_or("", String::as_str);
        for (bytes, time) in &found.line {
            let time = time.map_or_else(String::new, |time| (time.as_secs_f64() * 1e3).to_string());
            let [cell, arm] = [cell, arm].map(csv_field);
            let _ = csv.write_record([&cell, &arm, &bytes.to_string(), &time]);
        }
    }
    String::from_utf8(csv.into_inner().unwrap_or_default()).unwrap_or_default()
}

const READING: &str = "Lines are medians; a band is where an edge is, a dot on the axis where arithmetic has it, a dotted line where others published one. \
     Sizes are of the Certificate message; on the wire are all of the server’s messages from ServerHello to Finished, over QUIC without frames and packets.";

fn title(search: &Search) -> String {
    let metric = text::metric(search.metric);
    match search.id.as_str() {
        "" => metric.to_owned(),
        id => format!("Edges of the {metric}: {id}"),
    }
}

/// Cells with panels: one for each way of all but the link, and all in which luck decides.
fn shown(searched: &Searched, found: &[Found]) -> Vec<(usize, String)> {
    let names = cell_names(searched);
    let cells = &searched.search.experiment.cells;
    let mut shown: Vec<(usize, String)> = Vec::new();
    for found in found {
        let is_new = !shown.iter().any(|(cell, _)| *cell == found.cell);
        let has_luck = cells.get(found.cell).is_some_and(Search::has_luck);
        if is_new && (has_luck || searched.leader(found.cell) == found.cell) {
            let name = names.get(found.cell).cloned().unwrap_or_default();
            shown.push((found.cell, name));
        }
    }
    shown
}

fn drawing(searched: &Searched, found: &[Found], cell: usize) -> Steps {
    let kilobytes = |bytes: usize| bytes as f64 / 1e3;
    let lines = found
        .iter()
        .filter(|found| found.cell == cell)
        .map(|found| {
            let points = found.line.iter().map(|(bytes, time)| {
                (kilobytes(*bytes), time.map(|time| time.as_secs_f64() * 1e3))
            });
            let edges = match &found.edges {
                Edges::Exact(edges) => edges
                    .iter()
                    .map(|edge| (edge.below.certificate, edge.above.certificate))
                    .collect(),
                Edges::Told(changes) => changes
                    .iter()
                    .map(|change| change.interval)
                    .collect::<Vec<_>>(),
            };
            let computed = found.arithmetic.iter().flatten();
            StepLine {
                ink: Ink::nth(found.arm),
                points: points.collect(),
                edges: (edges.into_iter())
                    .map(|(low, high)| (kilobytes(low), kilobytes(high)))
                    .collect(),
                computed: computed
                    .map(|edge| kilobytes(edge.below.certificate))
                    .collect(),
            }
        });
    let published = searched.search.published.iter().flat_map(|of| &of.edges);
    Steps {
        x_title: "Certificate message, KB",
        y_title: "median, ms",
        lines: lines.collect(),
        marks: published
            .map(|edge| (kilobytes(*edge), format!("{} KB", kilobytes(*edge))))
            .collect(),
        reach: Vec::new(),
    }
}

fn table(searched: &Searched, found: &[Found]) -> Markup {
    let names = cell_names(searched);
    let cells: Vec<&[Found]> = found
        .chunk_by(|one, other| one.cell == other.cell)
        .collect();
    html! {
        details open[cells.len() <= 16] {
            summary { "Every edge" @if found.iter().any(|found| !missed(found).is_empty()) { ", and those that arithmetic alone has" } }
            div.scroll {
                table {
                    thead {
                        tr {
                            th { "cell" } th { "arm" } th { "Certificate, B" } th { (on_wire(searched)) ", B" }
                            th { "arithmetic, B" } th { "difference" } th { "time" } th { "" }
                        }
                    }
                    @for cell in cells {
                        tbody {
                            @for (nth, found) in cell.iter().enumerate() {
                                @if let Some((arm, _)) = place(searched, found) {
                                    @for (line, row) in rows(found, arm).into_iter().enumerate() {
                                        tr {
                                            th {
                                                @if nth + line == 0 { (names.get(found.cell).map_or("", String::as_str)) }
                                            }
                                            td { (row.arm) } td { (row.certificate) } td { (row.server_flight) }
                                            td { (row.arithmetic) } td { (row.difference) } td { (row.times) }
                                            td { (row.note.unwrap_or_default()) }
                                        }
                                    }
                                }
                            }
                        }
                    }
                }
            }
        }
    }
}

/// Published edges, and what has edges about there.
fn beside(searched: &Searched, published: &PublishedEdges) -> Markup {
    const LISTED: usize = 8;
    let guesses = implied(&searched.search, published);
    let edges: Vec<String> = published
        .edges
        .iter()
        .map(|edge| format!("{edge} B"))
        .collect();
    let mss = searched
        .search
        .experiment
        .cells
        .first()
        .map_or(0, |cell: &Cell| cell.hosts.mss());
    html! {
        h3 { "Published: " (edges.join(" and ")) }
        p.caption {
            (published.source) "."
            @if let Some(note) = &published.note { " " (note) }
        }
        @if guesses.is_empty() {
            p { "By arithmetic, no window, group and signature of this search has edges there." }
        } @else {
            p.caption {
                "By arithmetic, these servers have edges within a tenth of them. An edge is where full segments of "
                (mss) " bytes hold all that the server sends, so what else it sends, the ServerHello with the "
                "group’s share and the CertificateVerify above all, moves it."
            }
            table {
                thead {
                    tr {
                        th { "initcwnd" } th { "group" } th { "signature" } th { "edges, B" }
                        th { "all else on the wire, B" } th { "off by, %" }
                    }
                }
                tbody {
                    @for guess in guesses.iter().take(LISTED) {
                        tr {
                            th { (guess.initcwnd) } td { (guess.group) } td { (guess.leaf) }
                            td { (guess.edges.iter().map(usize::to_string).collect::<Vec<_>>().join(", ")) }
                            td { (guess.rest) } td { (format!("{:.1}", guess.off * 100.0)) }
                        }
                    }
                }
            }
        }
    }
}
