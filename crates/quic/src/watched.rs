//! What an end waits for, as quinn shows it to what moves its congestion window.

use std::any::Any;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use quinn_proto::RttEstimator;
use quinn_proto::congestion::{Controller, ControllerFactory, ControllerMetrics};

/// Whether quinn has asked for its window since that was last [taken](WindowQuery::take). When a datagram could leave, it asks if there
/// is something to send that is to be acknowledged, and the credit for it; if nothing leaves then, window or pacer hold it.
#[derive(Clone, Default)]
pub(crate) struct WindowQuery(Arc<AtomicBool>);

impl WindowQuery {
    pub(crate) fn take(&self) -> bool {
        self.0.swap(false, Ordering::Relaxed)
    }
}

/// Makes what moves the window, as another does, and notes who asks.
pub(crate) struct Watching {
    pub(crate) inner: Arc<dyn ControllerFactory + Send + Sync>,
    pub(crate) asked: WindowQuery,
}

impl ControllerFactory for Watching {
    fn build(self: Arc<Self>, now: Instant, mtu: u16) -> Box<dyn Controller> {
        Box::new(Watched {
            inner: self.inner.clone().build(now, mtu),
            asked: self.asked.clone(),
        })
    }
}

struct Watched {
    inner: Box<dyn Controller>,
    asked: WindowQuery,
}

impl Controller for Watched {
    fn on_sent(&mut self, now: Instant, bytes: u64, last_packet_number: u64) {
        self.inner.on_sent(now, bytes, last_packet_number);
    }

    fn on_ack(
        &mut self,
        now: Instant,
        sent: Instant,
        bytes: u64,
        app_limited: bool,
        rtt: &RttEstimator,
    ) {
        self.inner.on_ack(now, sent, bytes, app_limited, rtt);
    }

    fn on_end_acks(
        &mut self,
        now: Instant,
        in_flight: u64,
        app_limited: bool,
        largest: Option<u64>,
    ) {
        (self.inner).on_end_acks(now, in_flight, app_limited, largest);
    }

    fn on_congestion_event(
        &mut self,
        now: Instant,
        sent: Instant,
        is_persistent_congestion: bool,
        lost_bytes: u64,
    ) {
        (self.inner).on_congestion_event(now, sent, is_persistent_congestion, lost_bytes);
    }

    fn on_mtu_update(&mut self, mtu: u16) {
        self.inner.on_mtu_update(mtu);
    }

    fn window(&self) -> u64 {
        self.asked.0.store(true, Ordering::Relaxed);
        self.inner.window()
    }

    fn metrics(&self) -> ControllerMetrics {
        self.inner.metrics()
    }

    fn clone_box(&self) -> Box<dyn Controller> {
        Box::new(Watched {
            inner: self.inner.clone_box(),
            asked: self.asked.clone(),
        })
    }

    fn initial_window(&self) -> u64 {
        self.inner.initial_window()
    }

    fn into_any(self: Box<Self>) -> Box<dyn Any> {
        self.inner.into_any()
    }
}
