//! The registry of plots: a module each, which `study::plots!` names.

mod cdf;
mod increase;
mod percentiles;
mod table;

use maud::Markup;

use super::figure::Plan;
use crate::report::chart::Chart;
use crate::report::text;
use crate::results::Metric;
use crate::study::{Plot, Quantity, plots};

/// A kind of plot, as its module tells it.
pub(super) struct Kind {
    /// What its numbers are.
    pub(super) quantity: Quantity,
    pub(super) baseline: Baseline,
    /// What stands above it, where a study gives no title.
    title: fn(Metric) -> String,
    /// What the caption says of it, in whole sentences.
    note: fn(&Plan) -> String,
    draw: fn(&Plan) -> Content,
}

/// What becomes of the first arm.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Baseline {
    /// It is drawn like the others.
    Drawn,
    /// The others are compared with it.
    Compared,
}

/// What stands in a figure.
pub(super) enum Content {
    Chart(Chart),
    Table(Markup),
}

macro_rules! find_kinds {
    ($($(#[$doc:meta])* $plot:ident = $name:literal in $module:ident;)+) => {
        /// What draws such a plot.
        pub(super) fn kind(plot: Plot) -> &'static Kind {
            match plot {
                $(Plot::$plot => &$module::KIND,)+
            }
        }
    };
}

plots!(find_kinds);

impl Kind {
    pub(super) fn title(&self, metric: Metric) -> String {
        (self.title)(metric)
    }

    pub(super) fn note(&self, plan: &Plan) -> String {
        (self.note)(plan)
    }

    pub(super) fn draw(&self, plan: &Plan) -> Content {
        (self.draw)(plan)
    }
}

/// `Time to the last byte`
fn time_title(metric: Metric) -> String {
    let name = text::metric(metric);
    match metric {
        Metric::Connect | Metric::Handshake | Metric::TlsHandshake => format!("Time of the {name}"),
        Metric::Ttfb | Metric::Ttlb | Metric::DnsRecord => format!("Time to the {name}"),
    }
}
