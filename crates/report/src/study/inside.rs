//! One connection of each arm, packet by packet, where packets were kept.

use maud::{Markup, PreEscaped, html};

use super::findings::Findings;
use super::overview::breakable;
use crate::inside::{for_page, story};

/// The section of the page; none where no packets were kept.
pub(super) fn section(findings: &Findings) -> Option<Markup> {
    (!findings.inside.is_empty()).then(|| {
        html! {
            section.figure id="inside" {
                h2 { "One connection of each, packet by packet" }
                p.lead { "The slowest of those whose packets were kept." }
                @for inside in &findings.inside {
                    h3 { (breakable(&inside.name)) }
                    p { (story(inside).join(" ")) }
                    @for (class, drawing) in for_page(inside) {
                        div class=(class) { (PreEscaped(drawing)) }
                    }
                }
                p.caption {
                    "Time goes down. A cross is a packet that the link dropped, an orange line one that was sent again; grey lines are \
                     acknowledgements. Under way is what the sender has sent and not got acknowledged."
                }
            }
        }
    })
}
