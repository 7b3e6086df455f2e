//! One load of each arm's page, request by request, where loads were kept.

use lastbyte_page::har::Titled;
use maud::{Markup, PreEscaped, html};

use super::findings::Findings;
use super::overview::breakable;
use crate::waterfall::{MILESTONES, caption, for_page};
use lastbyte_results::number::millisecond_digits;

/// What single loads differ by is luck as well.
const APART: &str = "One load of each configuration, as near to its median as there is one. How these loads differ is \
    not how the configurations do: the table above has what many loads show.";

/// The section of the page; none where no loads were kept.
pub(super) fn section(findings: &Findings) -> Option<Markup> {
    let loads: Vec<Titled<'_>> = findings.loads.iter().map(|load| load.titled()).collect();
    let first = loads.first()?;
    Some(html! {
        section.figure id="waterfall" {
            h2 { "A page, request by request" }
            @if loads.len() > 1 { p.lead { (APART) } }
            @for (class, drawing) in for_page(&loads) {
                div class=(class) { (PreEscaped(drawing)) }
            }
            p.caption { (caption(first.load)) }
            div.scroll { (table(&loads)) }
        }
    })
}

fn table(loads: &[Titled<'_>]) -> Markup {
    html! {
        table {
            caption { "Of one load each, in ms where nothing else is said." }
            thead {
                tr {
                    th scope="col" { "load" }
                    @for (name, _) in MILESTONES { th scope="col" { (name) } }
                    th scope="col" { "requests" }
                    th scope="col" { "connections" }
                    th scope="col" { "KiB" }
                }
            }
            tbody {
                @for Titled { title, load } in loads {
                    tr {
                        th scope="row" { (breakable(title)) }
                        @for (_, of) in MILESTONES { td { (of(load).map(millisecond_digits).unwrap_or_default()) } }
                        td { (load.from_network().count()) }
                        td { (load.connections.len()) }
                        td { (load.wire().0.div_ceil(1024)) }
                    }
                }
            }
        }
    }
}
