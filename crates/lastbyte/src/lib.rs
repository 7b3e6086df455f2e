//! Lastbyte: what post-quantum TLS 1.3 costs, from `connect()` to the last byte.
//!
//! # The way of one connection
//!
//! Who reads the code for the first time may follow it:
//!
//! 1. [`Study::parse`] reads what is to be measured: [arms](study::Arm), which are TLS configurations, and
//!    [cells](study::Cell), which are all that is outside of TLS. `compare` makes the same of its options.
//! 2. A cell is [parameters](study::Parameter): each is in one place, as a key, an option, a caption and a
//!    column. Lists of them make grids.
//! 3. [`Study::blocks`] cuts the work into blocks of consecutive connections. A [`Runner`] gives them to an
//!    [`Engine`], as many at once as there are cores, and keeps each where it is done.
//! 4. [`PreparedArm`] has the chains made and a [`Stack`] of both sides; it tries a handshake in memory, so that
//!    what can't be is reported before anything is measured.
//! 5. The live engine ([`LiveEngine`]) makes namespaces, and a thread that emulates the link of each connection;
//!    the virtual one ([`VirtualEngine`]) starts a [kernel] of its own, whose clock skips all waiting.
//! 6. Both ends take turns: the stack makes bytes, the socket takes them, [`Pipe`] or netem says when each packet
//!    arrives, or that it is lost. Nobody but the seed and the place of a packet decides on luck.
//! 7. An [`Observer`] keeps what both sides sent and, with the secrets of the key log, says how large each
//!    [message](lastbyte_tls::observer::Message) was and what was negotiated. No stack is asked.
//! 8. All of that is a [`Row`]: times, messages, TCP's own numbers, how late the engine was. [`COLUMNS`] writes it
//!    as CSV and Parquet.
//! 9. [`Sample::validity`](results::Sample::validity) holds each row against its arm: its group, its signatures,
//!    the bytes of its chain. What is not as asked is reported, and no number comes of it.
//! 10. Rows of a block are a [`Part`] in a [`Folder`], sealed; [`Dataset`] reads them back.
//! 11. [`Summary`] makes percentiles and intervals of them, [`expected`] says what arithmetic without loss would
//!     have, and [`validate()`] compares any two of these.
//! 12. [`report`] writes answers: tables, documents, and [pages](report::study) with figures.
//!
//! [`COLUMNS`]: results::rows::COLUMNS
//! [`Dataset`]: results::Dataset
//! [`Engine`]: lab::Engine
//! [`Folder`]: results::Folder
//! [`LiveEngine`]: lab::LiveEngine
//! [`Observer`]: lastbyte_tls::observer::Observer
//! [`Part`]: results::Part
//! [`Pipe`]: lastbyte_link::Pipe
//! [`PreparedArm`]: lab::PreparedArm
//! [`Row`]: results::Row
//! [`Runner`]: lab::Runner
//! [`Stack`]: lastbyte_tls::Stack
//! [`Study::blocks`]: study::Study::blocks
//! [`Study::parse`]: study::Study::parse
//! [`Summary`]: results::Summary
//! [`VirtualEngine`]: lab::VirtualEngine
//! [`expected`]: results::expected
//! [`validate()`]: validate::validate

pub mod kernel;
pub mod lab;

pub use lastbyte_explain::{self as explain, geography, plan, search};
pub use lastbyte_report as report;
pub use lastbyte_results::{self as results, reduce, validate};
pub use lastbyte_study as study;
