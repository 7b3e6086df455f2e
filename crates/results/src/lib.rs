//! What is to be measured, what came of it, and what to say about it.
//!
//! Nothing here measures: no TLS, no socket, no clock but that of a moment that is written down. So results are
//! read, compared and drawn wherever Rust is.
//!
//! - [`study`]: arms, cells and the file that they are written in.
//! - [`row`]: what is known of one connection.
//! - [`results`]: rows, part files, percentiles and their intervals, warnings.
//! - [`validate`]: results against results, or against arithmetic.
//! - [`explain`]: what an arm costs by arithmetic alone.
//! - [`plan`]: what a chain costs the users of a site, and what would win it back.
//! - [`search`]: edges, where a time steps as chains grow.
//! - [`geography`]: what distances between users, edges and origins make of an arm's times.
//! - [`report`]: tables, documents, pages and charts.

pub mod explain;
pub mod geography;
pub mod plan;
pub mod reduce;
pub mod report;
pub mod results;
pub mod row;
pub mod search;
pub mod study;
pub mod validate;

#[cfg(test)]
mod documents;
