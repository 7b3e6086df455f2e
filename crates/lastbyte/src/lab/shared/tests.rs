#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::sync::Barrier;
use std::thread;

use super::*;

/// Who comes second waits until the first one has left, or until its patience ends.
#[test]
fn one_thread_at_a_time_is_inside_a_socket() {
    const ROUNDS: usize = 1000;
    let shared = Shared::new(1);
    let (has_left, barrier) = (AtomicBool::new(false), Barrier::new(2));
    let waits = thread::scope(|scope| {
        scope.spawn(|| {
            for _ in 0..ROUNDS {
                has_left.store(false, Relaxed);
                let hold = shared.hold(0, Side::Client);
                barrier.wait();
                let until = sys::now() + PATIENCE / 5;
                while sys::now() < until {
                    hint::spin_loop();
                }
                has_left.store(true, Relaxed);
                drop(hold);
                barrier.wait();
            }
        });
        let second = scope.spawn(|| {
            let mut waits = Vec::new();
            for _ in 0..ROUNDS {
                barrier.wait();
                let begin = sys::now();
                let hold = shared.hold(0, Side::Client);
                let alone = has_left.load(Relaxed);
                let wait = sys::now().since(begin);
                drop(hold);
                waits.push((alone, wait));
                barrier.wait();
            }
            waits
        });
        second.join().unwrap()
    });
    for (alone, wait) in &waits {
        assert!(*alone || *wait >= PATIENCE, "came in after {wait:?}");
    }
    let shortest = waits.into_iter().map(|(_, wait)| wait).min();
    assert!(
        shortest < Some(PATIENCE),
        "nobody is let in before patience ends"
    );
}

#[test]
fn patience_ends() {
    let shared = Shared::new(1);
    let never_left = shared.hold(0, Side::Server);
    let begin = sys::now();
    drop(shared.hold(0, Side::Server));
    assert!(sys::now().since(begin) >= PATIENCE);
    drop(never_left);
    assert!(!is_held(&shared, 0, Side::Server));
}

#[test]
fn each_socket_is_held_alone() {
    let shared = Shared::new(2);
    let hold = shared.hold(0, Side::Client);
    assert!(is_held(&shared, 0, Side::Client));
    assert!(!is_held(&shared, 0, Side::Server));
    assert!(!is_held(&shared, 1, Side::Client));
    drop(hold);
    assert!(!is_held(&shared, 0, Side::Client));
}

fn is_held(shared: &Shared, slot: u32, toward: Side) -> bool {
    shared.end(slot, toward).unwrap().held.load(Relaxed)
}

#[test]
fn deliveries_are_noted_for_each_end() {
    let shared = Shared::new(2);
    shared.set_delivered(1, Side::Server, Time(7));
    assert_eq!(shared.delivered(1, Side::Server), Time(7));
    assert_eq!(shared.delivered(1, Side::Client), Time(0));
    assert_eq!(shared.delivered(0, Side::Server), Time(0));
}

#[test]
fn a_slot_that_is_not_there_is_no_matter() {
    let shared = Shared::new(1);
    drop(shared.hold(1, Side::Client));
    shared.set_delivered(1, Side::Client, Time(7));
    assert_eq!(shared.delivered(1, Side::Client), Time(0));
}

#[test]
fn a_stop_is_for_good() {
    let shared = Shared::new(0);
    assert!(!shared.is_stopped());
    shared.stop();
    shared.stop();
    assert!(shared.is_stopped());
}
