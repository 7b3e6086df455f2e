//! What a client is at, between and within its requests, and when it takes too long over one.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::{Instant, sleep_until};

use super::super::room::Spot;

/// What a client has to bring of a body, on average, besides what the time for a head allows: as
/// Apache's `mod_reqtimeout` has it.
const FLOOR: u64 = 500;

/// What a client is at. Its connection rests, and makes room for others, except within a request.
#[derive(Debug)]
pub(super) struct Pace {
    spot: Arc<Spot>,
    /// From the first byte of a head to its end, and for a body besides what it brings.
    time: Duration,
    at: Mutex<At>,
    changed: Notify,
}

#[derive(Debug, Default)]
struct At {
    now: Now,
    /// Somebody sleeps until the end of an earlier head or body, which is not later.
    is_watched: bool,
}

#[derive(Debug, Default)]
enum Now {
    /// It has brought nothing of its next request.
    #[default]
    Between,
    /// A head has begun to come.
    Head(Instant),
    Request(Parts),
    /// It speaks another protocol from now on.
    Upgraded,
}

/// How far a request is.
#[derive(Debug, Default)]
struct Parts {
    /// Nobody reads its body any more.
    is_read: bool,
    /// All of its response was taken.
    is_answered: bool,
    /// And it was written.
    is_written: bool,
    /// What came of its body.
    bytes: u64,
    /// How long that was waited for, and since when it is.
    waited: Duration,
    waits: Option<Instant>,
}

/// A part of a request under way: its body, or its response. Over when it is dropped.
#[derive(Debug)]
pub(super) struct UnderWay {
    pace: Arc<Pace>,
    part: Part,
}

#[derive(Clone, Copy, Debug)]
enum Part {
    Body,
    Response,
}

impl Pace {
    pub(super) fn new(spot: Arc<Spot>, time: Duration) -> Arc<Pace> {
        Arc::new(Pace {
            spot,
            time,
            at: Mutex::default(),
            changed: Notify::new(),
        })
    }

    fn at(&self) -> MutexGuard<'_, At> {
        self.at.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Something came from the client.
    pub(super) fn reads(&self) {
        let mut at = self.at();
        if matches!(at.now, Now::Between) {
            at.now = Now::Head(Instant::now());
            self.watch(&at);
        }
    }

    /// A head was whole.
    pub(super) fn begins(self: &Arc<Self>) -> (UnderWay, UnderWay) {
        self.at().now = Now::Request(Parts::default());
        self.spot.speaks();
        let part = |part| UnderWay {
            pace: Arc::clone(self),
            part,
        };
        (part(Part::Body), part(Part::Response))
    }

    /// All was written that there was to write.
    pub(super) fn is_flushed(&self) {
        self.notes(|parts| parts.is_written |= parts.is_answered);
    }

    /// What follows is no HTTP.
    pub(super) fn upgrades(&self) {
        self.at().now = Now::Upgraded;
    }

    /// Notes something of the request under way, which may be over by that.
    fn notes(&self, note: impl FnOnce(&mut Parts)) {
        let mut at = self.at();
        let Now::Request(parts) = &mut at.now else {
            return;
        };
        note(parts);
        if parts.waits.is_some() {
            self.watch(&at);
        } else if parts.is_read && parts.is_written {
            at.now = Now::Between;
            self.spot.rests();
        }
    }

    fn watch(&self, at: &At) {
        if !at.is_watched {
            self.changed.notify_one();
        }
    }

    /// Until the client takes too long over a request, and over what.
    pub(super) async fn is_too_slow(&self) -> String {
        loop {
            let until = {
                let mut at = self.at();
                let until = at.deadline(self.time);
                at.is_watched = until.is_some();
                match until {
                    Some((until, what)) if until <= Instant::now() => return what,
                    until => until.map(|(until, _)| until),
                }
            };
            match until {
                Some(until) => sleep_until(until).await,
                None => self.changed.notified().await,
            }
        }
    }
}

impl At {
    /// By when what is waited for has to come, and what is reported if it does not.
    fn deadline(&self, time: Duration) -> Option<(Instant, String)> {
        match &self.now {
            Now::Head(since) => {
                let what = format!("the head of a request was not whole after {time:?}");
                Some((*since + time, what))
            }
            Now::Request(parts) => {
                let allowed = time + Duration::from_secs(parts.bytes / FLOOR);
                let what = format!("the body of a request came slower than {FLOOR} bytes a second");
                Some((parts.waits? + allowed.saturating_sub(parts.waited), what))
            }
            Now::Between | Now::Upgraded => None,
        }
    }
}

impl UnderWay {
    /// The client has to bring more.
    pub(super) fn waits(&self) {
        self.pace.notes(|parts| {
            parts.waits.get_or_insert_with(Instant::now);
        });
    }

    /// It has brought so many bytes.
    pub(super) fn has(&self, bytes: usize) {
        self.pace.notes(|parts| {
            parts.bytes += u64::try_from(bytes).unwrap_or(u64::MAX);
            if let Some(since) = parts.waits.take() {
                parts.waited += since.elapsed();
            }
        });
    }
}

impl Drop for UnderWay {
    fn drop(&mut self) {
        self.pace.notes(|parts| match self.part {
            Part::Body => {
                parts.is_read = true;
                parts.waits = None;
            }
            Part::Response => parts.is_answered = true,
        });
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::net::IpAddr;

    use tokio::time::{advance, timeout};

    use super::super::super::room::{Most, Place, Room};
    use super::*;

    const TIME: Duration = Duration::from_secs(30);

    fn pace() -> (Place, Arc<Pace>) {
        let room = Room::new(Most {
            connections: 1,
            of_one: 1,
            of_one_in_a_crowd: 1,
            handshakes: 1,
        });
        let place = room.enter(IpAddr::from([192, 0, 2, 1]).into()).unwrap();
        place.is_established();
        let pace = Pace::new(place.spot(), TIME);
        (place, pace)
    }

    /// Whether it is too slow by so many seconds from now.
    async fn is_too_slow_within(pace: &Pace, seconds: u64) -> bool {
        let late = timeout(Duration::from_secs(seconds), pace.is_too_slow());
        late.await.is_ok()
    }

    #[tokio::test(start_paused = true)]
    async fn a_head_that_drips_has_its_time_from_its_first_byte() {
        let (_place, pace) = pace();
        assert!(!is_too_slow_within(&pace, 1000).await, "nothing was begun");
        pace.reads();
        for _ in 0..29 {
            assert!(!is_too_slow_within(&pace, 1).await);
            pace.reads();
        }
        assert!(is_too_slow_within(&pace, 2).await);
        // A whole one may be answered as late as it likes.
        let _parts = pace.begins();
        assert!(!is_too_slow_within(&pace, 1000).await);
    }

    #[tokio::test(start_paused = true)]
    async fn a_body_has_to_come_at_a_rate_while_it_is_waited_for() {
        let (_place, pace) = pace();
        pace.reads();
        let (body, _response) = pace.begins();
        // A backend that takes its time is nobody's fault.
        advance(Duration::from_secs(1000)).await;
        body.has(10_000);
        body.waits();
        assert!(
            !is_too_slow_within(&pace, 49).await,
            "20 s more than a head"
        );
        body.has(1);
        advance(Duration::from_secs(1000)).await;
        body.waits();
        assert!(is_too_slow_within(&pace, 2).await);
    }

    #[tokio::test(start_paused = true)]
    async fn a_request_is_over_once_it_is_read_answered_and_written() {
        for order in [[0, 1, 2], [1, 0, 2], [1, 2, 0]] {
            let (_place, pace) = pace();
            pace.reads();
            let (body, response) = pace.begins();
            let (mut body, mut response) = (Some(body), Some(response));
            for step in order {
                assert!(matches!(pace.at().now, Now::Request(_)), "{order:?}");
                match step {
                    0 => drop(body.take()),
                    1 => drop(response.take()),
                    _ => pace.is_flushed(),
                }
            }
            assert!(matches!(pace.at().now, Now::Between), "{order:?}");
        }
        let (_place, pace) = pace();
        let parts = pace.begins();
        pace.upgrades();
        drop(parts);
        pace.reads();
        assert!(!is_too_slow_within(&pace, 1000).await);
    }
}
