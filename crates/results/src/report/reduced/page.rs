//! The page.

use maud::{Markup, html};

use super::super::chart::STYLE;
use super::super::document::document;
use super::{COLUMNS, Reduced, name, sizes, times};
use crate::reduce::Table;

const TITLE: &str = "What should I do about it?";
const STYLE_OF_PAGE: &str = include_str!("../study/page.css");

/// The answer, a table for each cell, what each way takes, and the command, as HTML in light and dark.
pub fn page(reduced: &Reduced<'_>) -> String {
    let body = html! {
        h1 { (TITLE) }
        @for sentence in reduced.answer() { p.answer { (sentence) } }
        @for warning in reduced.warnings { p.warning { "warning: " (warning) } }
        @for table in reduced.tables { (section(reduced, table)) }
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
    document(TITLE, &[STYLE_OF_PAGE, STYLE], &body)
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
