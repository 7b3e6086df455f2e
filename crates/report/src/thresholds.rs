//! From when on something is worth a word: every threshold of a sentence that a report says, and nothing else.

use std::time::Duration;

// What is felt.

/// A part of a round trip that nobody calls one.
pub(super) const NOTICED_TRIPS: f64 = 0.2;
/// An increase that is one, in percent.
pub(super) const NOTICED_PERCENT: f64 = 0.5;
/// How much longer a wait is that people notice: a plan counts by it.
pub(super) use lastbyte_explain::plan::NOTICEABLE;
/// The same in milliseconds.
pub(super) const NOTICEABLE_MS: f64 = match NOTICEABLE {
    lastbyte_results::Step::Milliseconds(felt) => felt as f64,
    lastbyte_results::Step::RoundTrips(_) => f64::INFINITY,
};
/// How much longer a wait is that people feel, in the table of kinds of traffic: up to a tenth of a second, what happens seems
/// to happen at once (Nielsen, Usability Engineering, 1993, chapter 5).
pub(super) const NOTICED_WAIT: lastbyte_results::Step = lastbyte_results::Step::Milliseconds(100);
/// The part of connections from which on many notice it, and from which on some do.
pub(super) const MANY_NOTICE: f64 = 0.25;
/// See [`MANY_NOTICE`].
pub(super) const SOME_NOTICE: f64 = 0.01;
/// The least increase that is reported as anything but zero, in percent.
pub(super) const LEAST_PERCENT: f64 = 0.005;
/// What one decimal writes as nothing, in milliseconds or in percent.
pub const NOTHING_MS: f64 = 0.05;
/// What is written as nothing inside of one connection.
pub(super) const NOTHING_INSIDE: Duration = Duration::from_nanos(500);

// What is worth a word beside something else.

/// Configurations that a sentence names.
pub(super) const NAMED: usize = 3;
/// Series that a heading of a figure names.
pub(super) const NAMED_SERIES: usize = 2;
/// The part of a difference that a cause must be.
pub(super) const WORTH_PART: f64 = 0.005;
/// The part of a cost that computing, or what is left of round trips, must be in a table.
pub(super) const WORTH_PART_OF_COST: f64 = 0.1;
/// The part of what the handshake costs below which a last byte has made up for the rest.
pub(super) const WORTH_PART_OF_HANDSHAKE: f64 = 0.5;
/// Nor is less than that, in milliseconds.
pub const WORTH_MS: f64 = 1.0;
/// What comes sooner, beside what comes later, in percent.
pub(super) const WORTH_PERCENT: f64 = 4.0;
/// How much larger what is shown elsewhere must be than on the network that most readers have, to be told besides.
pub(super) const WORTH_MORE: f64 = 1.2;
/// So many times as long is longer.
pub(super) const LONGER: f64 = 1.05;
/// So many times as long as hardly anything is not told as times.
pub(super) const TIMES: f64 = 20.0;

/// The part of a whole chain's time by which another way must be sooner or later: what differs by less is a tie.
pub(super) const WORTH_PART_OF_WHOLE: f64 = 0.01;
/// The part of connections by which what is supposed must change the share that waits.
pub(super) const WORTH_SHARE: f64 = 0.01;
/// What gains such a part of what gains most gains as much.
pub(super) const AS_MUCH: f64 = 0.9;

// How sure a number is.

/// How far its interval may reach to either side, as a part of it; of what is less sure, the least that it is for all that
/// is known is told.
pub(super) const SURE: f64 = 0.25;

// What is taken for the same.

/// How far from a whole number of round trips an increase may be and still be called one.
pub(super) const ROUND_TRIP_TOLERANCE: f64 = 0.1;
/// The part of a round trip that is called a whole one, where a link is slow.
pub(super) const WHOLE_TRIP: f64 = 0.9;
/// How far arithmetic of bytes may be off and still be what a time is for: of that time,
pub(super) const BYTES_TOLERANCE: f64 = 0.15;
/// and of a round trip.
pub(super) const BYTES_TOLERANCE_OF_RTT: f64 = 0.01;
/// The share of what is computed more that one step may be, where another one takes less.
pub(super) const MOST_OF_ALL: f64 = 1.1;

// The network that most readers have: a line into a house, without loss, and with Linux's own settings.

/// Its round-trip time.
pub(super) const USUAL_RTT: Duration = Duration::from_millis(35);
/// Its rate, in bits per second.
pub(super) const USUAL_RATE: f64 = 1e8;

/// The round trip that flights are drawn with where several were measured: of many users on mobile networks, and between
/// neighbouring countries.
pub(super) const DRAWN_RTT: Duration = Duration::from_millis(50);
