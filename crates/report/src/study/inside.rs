//! One connection of each arm, packet by packet, where packets were kept.

use maud::{Markup, PreEscaped, html};

use super::findings::Findings;
use super::overview::breakable;
use crate::inside::Seen;

/// The section of the page; none where no packets were kept.
pub(super) fn section(findings: &Findings) -> Option<Markup> {
    (!findings.inside.is_empty()).then(|| {
        html! {
            section.figure id="inside" {
                h2 { "One connection of each, packet by packet" }
                p.lead { "The slowest of those whose packets were kept." }
                @for seen in &findings.inside {
                    h3 { (breakable(seen.name())) }
                    p { (seen.story().join(" ")) }
                    @for (class, drawing) in seen.for_page() {
                        div class=(class) { (PreEscaped(drawing)) }
                    }
                }
                p.caption {
                    "Time goes down. A cross is a packet that the link dropped, an orange line one that was sent again; grey lines are \
                     acknowledgements. Under way is what the sender has sent and not got acknowledged."
                    @if findings.inside.iter().any(|seen| matches!(seen, Seen::Quic(_))) {
                        " Of QUIC, the lower drawing has what the server has sent against what it may send: three times what it has \
                         received, until it knows the client's address, and its initial window more than what is acknowledged. The \
                         window may have grown since. Where the ground is shaded, it had something to send and no credit."
                    }
                }
            }
        }
    })
}
