//! Results for people and for programs.

mod aligned;
mod answer;
mod assumed;
mod brief;
mod chart;
mod csv;
mod document;
#[cfg(test)]
mod documents;
mod escape;
mod explanation;
pub mod explore;
pub mod geography;
#[cfg(test)]
mod hostile;
pub mod inside;
mod json;
mod junit;
mod layout;
pub mod loaded;
pub mod lost;
mod markdown;
mod messages;
pub mod planned;
mod qq;
pub mod reduced;
mod search;
pub mod site;
pub mod study;
mod svg;
mod table;
#[cfg(test)]
mod tests;
mod text;
pub mod thresholds;
mod ticks;
pub mod validation;
mod waiting;
pub mod waterfall;

pub use self::csv::csv;
pub use assumed::assumed;
pub use chart::DrawError;
pub use explanation::{EXPLANATION_SCHEMA, explanation, explanation_json, explanation_svg};
pub use json::{SCHEMA, json};
pub use junit::{Samples, budgets_junit, junit};
pub use layout::{Colours, Screen, for_terminal, json_for_terminal};
pub use markdown::markdown;
pub use search::{SCHEMA as SEARCH_SCHEMA, json as search_json, table as search_table};
pub use table::{Detail, table};
