//! The registry of plots: a module each, which `study::plots!` names.

mod cdf;
mod dots;
mod increase;
mod percentiles;
mod table;

use super::plan::Kind;
use crate::text;
use lastbyte_results::Metric;
use lastbyte_study::{Plot, plots};

macro_rules! find_kinds {
    ($($(#[$doc:meta])* $plot:ident = $name:literal takes $takes:tt in $module:ident;)+) => {
        /// What draws such a plot.
        pub(super) fn kind(plot: Plot) -> &'static Kind {
            match plot {
                $(Plot::$plot => &$module::KIND,)+
            }
        }
    };
}

plots!(find_kinds);

/// `Time to the last byte`
fn time_title(metric: Metric) -> String {
    let name = text::metric(metric);
    match metric {
        Metric::Connect | Metric::Handshake | Metric::TlsHandshake => format!("Time of the {name}"),
        Metric::Ttfb
        | Metric::Ttlb
        | Metric::DnsRecord
        | Metric::Fcp
        | Metric::Lcp
        | Metric::Load => format!("Time to the {name}"),
        Metric::SpeedIndex => name.to_owned(),
    }
}
