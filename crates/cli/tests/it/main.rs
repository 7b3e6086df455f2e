//! The program, end to end. One test program for all, since linking each takes longer than running it.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod ad;
mod calibrate;
mod chain_public;
mod common;
mod compare;
mod completions;
mod delivery;
mod documents;
mod exit_codes;
mod explain;
mod interrupts;
mod kernel;
mod kernel_fetch;
mod link;
mod mtc;
mod options;
mod peers;
mod plan;
mod population;
mod privileges;
mod reduce;
mod regression;
mod relations;
mod report;
mod rooms;
mod rows;
mod rtt;
mod run;
mod scripts;
mod see_inside;
mod service;
mod usage;
mod validate;
mod virtual_engine;
mod zeek;
