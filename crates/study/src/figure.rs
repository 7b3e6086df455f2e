//! How results are drawn.

use lastbyte_link::named;

use super::{Filter, Metric, Parameter, Percentile};

/// A drawing of the results of measures.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Figure {
    /// Its name, unique in the study.
    pub id: String,
    /// What stands above it; made of what is drawn if it is absent.
    pub title: Option<String>,
    /// The measures whose results are drawn.
    pub measures: Vec<String>,
    /// What is drawn.
    pub plot: Plot,
    /// What changes along the horizontal axis. Without it, percentiles stand beside each other; the
    /// CDF has the time there, a table nothing.
    pub x: Option<Parameter>,
    /// What changes from panel to panel.
    pub facets: Vec<Parameter>,
    /// The time that is drawn.
    pub metric: Metric,
    /// The arms that are drawn; all, if none is named.
    pub arms: Vec<String>,
    /// The cells that are drawn.
    pub cells: Filter,
    /// Over what connections are pooled before percentiles are taken.
    pub pool: Vec<Parameter>,
    /// The percentiles that are drawn; those of the study, if none is named.
    pub percentiles: Vec<Percentile>,
    /// What is drawn beside the measurement.
    pub beside: Vec<Beside>,
}

/// Gives all kinds of plots to a macro, a line each: its name, which of a figure's keys `x`, `percentiles` and `beside` it
/// takes, and the module of `lastbyte-report`'s `study::plot` that draws it.
#[macro_export]
macro_rules! plots {
    ($make:ident) => {
        $make! {
            /// The increase of each arm over the baseline.
            Increase = "increase" takes ["x", "percentiles", "beside"] in increase;
            /// Percentiles of each arm.
            Percentiles = "percentiles" takes ["x", "percentiles"] in percentiles;
            /// Percentiles of many arms, a row for each.
            Dots = "dots" takes ["x", "percentiles"] in dots;
            /// The distribution function of each arm.
            Cdf = "cdf" takes [] in cdf;
            /// The numbers themselves.
            Table = "table" takes ["percentiles"] in table;
        }
    };
}

macro_rules! name_plots {
    ($($(#[doc = $doc:literal])+ $plot:ident = $name:literal takes $takes:tt in $module:ident;)+) => {
        /// What a figure draws.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum Plot {
            $($(#[doc = $doc])+ $plot,)+
        }

        named!(Plot, "plot", { $($plot => $name,)+ });

        impl Plot {
            /// What it draws.
            pub fn doc(self) -> &'static str {
                match self {
                    $(Plot::$plot => concat!($($doc),+).trim(),)+
                }
            }

            /// Which of the keys that not all plots have it takes.
            pub fn takes(self) -> &'static [&'static str] {
                match self {
                    $(Plot::$plot => &$takes,)+
                }
            }

            /// As a figure has it.
            pub(crate) fn written(self) -> &'static str {
                match self {
                    $(Plot::$plot => concat!("plot = \"", $name, "\""),)+
                }
            }

            /// The keys of figures that not all plots have.
            pub(crate) const SOME: [&'static str; 3] = ["x", "percentiles", "beside"];
        }
    };
}

plots!(name_plots);

/// What can be drawn beside a measured increase.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Beside {
    /// What flight arithmetic says.
    Arithmetic,
    /// The rules of thumb of the time-to-last-byte paper's slides: with x the time that the additional
    /// bytes take at the link's rate, H = x / 2 RTT more for the handshake, 0.66 H for the first byte
    /// and 0.40 H for the last.
    RulesOfThumb,
}

named!(Beside, "line beside the measurement", {
    Arithmetic => "arithmetic",
    RulesOfThumb => "rules-of-thumb",
});
