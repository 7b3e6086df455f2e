//! Lastbyte: what post-quantum TLS 1.3 costs, from `connect()` to the last byte.

pub mod kernel;
pub mod lab;
pub mod report;
pub mod results;
pub mod study;
pub mod validate;
