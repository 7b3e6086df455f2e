//! The page.

use maud::{Markup, html};

use super::super::document::{Head, document};
use super::beside::{Beside, LEGEND};
use super::{COLUMNS, Reduced, name, sizes, times};
use lastbyte_results::reduce::Table;

const TITLE: &str = "What should I do about it?";

/// The answer, a table for each cell, what each way takes, and the command, as HTML in light and dark.
pub fn page(reduced: &Reduced<'_>) -> String {
    let answer = reduced.answer();
    let body = html! {
        header {
            h1 { (TITLE) }
            @for sentence in &answer { p.verdict { (sentence) } }
        }
        @for warning in reduced.warnings { p.warning { "warning: " (warning) } }
        section {
            h2 { "All ways beside each other" }
            p.caption { (LEGEND) " Sorted by " (reduced.by) "." }
            (beside(reduced))
        }
        @for table in reduced.tables {
            details {
                summary { (table.cell) }
                (section(reduced, table))
            }
        }
        section {
            h2 { "What each way takes" }
            div.scroll { (ways(reduced)) }
            @for (way, reason) in &reduced.reduce.unavailable {
                p.caption { (way.name) " can't be had: " (reason) "." }
            }
        }
        section {
            p {
                "Measured by the " (reduced.environment.engine) " engine over " (reduced.environment.kernel) "."
            }
            pre { (reduced.command) }
        }
    };
    let head = Head {
        title: TITLE,
        about: answer.first().map(String::as_str),
        url: None,
    };
    document(&head, "", &body)
}

fn beside(reduced: &Reduced<'_>) -> Markup {
    let beside = Beside::new(reduced);
    html! {
        div.scroll {
            table {
                thead {
                    tr {
                        th {} th { "Certificate, B" } th { "server, B" } th { "flights" }
                        @for network in &beside.networks { th { (beside.times()) br; (network) } }
                    }
                }
                tbody {
                    @for entry in &beside.entries {
                        tr {
                            th { (entry.name) }
                            td { @if let Some(bytes) = entry.certificate { (bytes) } @else { "-" } }
                            td { @if let Some(bytes) = entry.server { (bytes) } @else { "-" } }
                            td { @if let Some(flights) = entry.flights { (flights) } @else { "-" } }
                            @for number in 0..beside.networks.len() {
                                td { @if entry.subject.is_some() { (entry.change(number)) } }
                            }
                        }
                    }
                }
            }
        }
    }
}

fn section(reduced: &Reduced<'_>, table: &Table<'_>) -> Markup {
    let columns = [sizes(table), times(table, reduced.percentiles)]
        .into_iter()
        .flatten();
    let columns: Vec<_> = columns.collect();
    html! {
        section {
            h2 { (table.cell) }
            p.caption { "The quickest first. " (COLUMNS) "." }
            div.scroll {
                table {
                    thead { tr { th {} @for column in &columns { th { (column.title) } } } }
                    tbody {
                        @for ranked in &table.ranked {
                            tr {
                                th { (name(ranked)) }
                                @for column in &columns { td { (column.of(ranked)) } }
                            }
                        }
                    }
                }
            }
        }
    }
}

fn ways(reduced: &Reduced<'_>) -> Markup {
    html! {
        ul {
            @for way in &reduced.reduce.ways {
                @let way = way.reduction;
                li {
                    b { (way.name) } ": " (way.doc) ". "
                    @if let Some(holds) = way.holds {
                        "Clients hold " (holds.what) "; how old: " (holds.age) ". "
                    }
                    "Clients that lack it: " (way.stale) ". Who has it: " (way.support) "."
                }
            }
        }
    }
}
