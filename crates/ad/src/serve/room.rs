//! How many connections there may be, and of whom.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use nix::sys::resource::{Resource, getrlimit, setrlimit};
use tokio::sync::{Notify, oneshot};

use super::source::Source;

/// For how many connections there are files: each takes two, and the program has some of its own. It is as many as
/// this user may have.
pub(super) fn files_for() -> usize {
    /// Listeners, logs, chains that are read.
    const OWN: u64 = 64;
    let Ok((_, most)) = getrlimit(Resource::RLIMIT_NOFILE) else {
        return usize::MAX;
    };
    // Where that is refused, there are as many as before.
    let _ = setrlimit(Resource::RLIMIT_NOFILE, most, most);
    let Ok((files, _)) = getrlimit(Resource::RLIMIT_NOFILE) else {
        return usize::MAX;
    };
    usize::try_from(files.saturating_sub(OWN) / 2).unwrap_or(usize::MAX)
}

/// How much room there is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Most {
    /// Connections at a time.
    pub(super) connections: usize,
    /// Those of one source.
    pub(super) of_one: usize,
    /// Handshakes under way.
    pub(super) handshakes: usize,
}

/// Where there is no room, a handshake has to go: the oldest one of whoever has most of them. Who has a
/// session stays.
#[derive(Debug)]
pub(super) struct Room {
    most: Most,
    state: Mutex<State>,
    left: Notify,
}

#[derive(Debug, Default)]
struct State {
    connections: usize,
    handshakes: usize,
    /// Handshakes are numbered in their order.
    next: u64,
    sources: HashMap<Source, Of>,
    /// The sources that have handshakes: how many, and the number of the oldest.
    crowds: BTreeSet<(usize, Reverse<u64>, Source)>,
}

/// What one source has.
#[derive(Debug, Default)]
struct Of {
    connections: usize,
    handshakes: BTreeMap<u64, oneshot::Sender<()>>,
}

/// A connection's place, given back when it is dropped.
#[derive(Debug)]
pub(super) struct Place {
    room: Arc<Room>,
    source: Source,
    /// The handshake's number, while it is under way.
    handshake: Option<u64>,
    leave: Option<oneshot::Receiver<()>>,
}

impl Room {
    pub(super) fn new(most: Most) -> Arc<Room> {
        Arc::new(Room {
            most,
            state: Mutex::default(),
            left: Notify::new(),
        })
    }

    /// Until there is room for one more.
    pub(super) async fn ready(&self) {
        loop {
            let left = self.left.notified();
            {
                let mut state = self.lock();
                if state.connections < self.most.connections {
                    return;
                }
                state.send_away();
            }
            left.await;
        }
    }

    /// Takes a connection in. None if its source has as many as it may, and all of them have their session.
    pub(super) fn enter(self: &Arc<Self>, source: Source) -> Option<Place> {
        let has_room = self.lock().has_room_for(source, self.most.of_one);
        has_room.then(|| self.enter_for_others(source))
    }

    /// Takes a connection in whose source is yet to be told ([`Place::is_of`]).
    pub(super) fn enter_for_others(self: &Arc<Self>, source: Source) -> Place {
        let mut state = self.lock();
        if state.handshakes >= self.most.handshakes {
            state.send_away();
        }
        let (sender, leave) = oneshot::channel();
        let number = state.next;
        state.next += 1;
        state.connections += 1;
        state.sources.entry(source).or_default().connections += 1;
        state.change(source, |handshakes| {
            handshakes.insert(number, sender);
        });
        Place {
            room: Arc::clone(self),
            source,
            handshake: Some(number),
            leave: Some(leave),
        }
    }

    /// Connections, and handshakes among them.
    pub(super) fn taken(&self) -> (usize, usize) {
        let state = self.lock();
        (state.connections, state.handshakes)
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// Whether a source may have one more, for which its oldest handshake may have to go.
    fn has_room_for(&mut self, source: Source, most: usize) -> bool {
        let of = self.sources.get(&source);
        of.is_none_or(|of| of.connections < most) || self.send_away_of(source)
    }

    /// Has the oldest handshake go of whoever has most, if there is any.
    fn send_away(&mut self) {
        if let Some(&(.., source)) = self.crowds.last() {
            self.send_away_of(source);
        }
    }

    fn send_away_of(&mut self, source: Source) -> bool {
        let oldest = self.change(source, |handshakes| handshakes.pop_first());
        let Some((_, leave)) = oldest else {
            return false;
        };
        // It may be ending by itself.
        let _ = leave.send(());
        true
    }

    /// A connection of a source is over, and its handshake, if it is under way.
    fn leave(&mut self, source: Source, handshake: Option<u64>) -> Option<oneshot::Sender<()>> {
        self.connections = self.connections.saturating_sub(1);
        if let Some(of) = self.sources.get_mut(&source) {
            of.connections = of.connections.saturating_sub(1);
        }
        self.change(source, |handshakes| handshakes.remove(&handshake?))
    }

    /// Changes the handshakes of a source, and all that is counted of them.
    fn change<T>(
        &mut self,
        source: Source,
        change: impl FnOnce(&mut BTreeMap<u64, oneshot::Sender<()>>) -> T,
    ) -> T {
        let of = self.sources.entry(source).or_default();
        let before = of.crowd();
        let changed = change(&mut of.handshakes);
        let after = of.crowd();
        if of.connections == 0 && after.is_none() {
            self.sources.remove(&source);
        }
        if let Some((count, oldest)) = before {
            self.handshakes -= count;
            self.crowds.remove(&(count, oldest, source));
        }
        if let Some((count, oldest)) = after {
            self.handshakes += count;
            self.crowds.insert((count, oldest, source));
        }
        changed
    }
}

impl Of {
    /// How many handshakes there are, and the number of the oldest.
    fn crowd(&self) -> Option<(usize, Reverse<u64>)> {
        let (oldest, _) = self.handshakes.first_key_value()?;
        Some((self.handshakes.len(), Reverse(*oldest)))
    }
}

impl Place {
    /// Whose it is, now that it is known. False if that source has as many as it may, and all of them have their session.
    pub(super) fn is_of(&mut self, source: Source) -> bool {
        let mut state = self.room.lock();
        let number = self.handshake;
        let leave = state.leave(self.source, number);
        let has_room = state.has_room_for(source, self.room.most.of_one);
        state.sources.entry(source).or_default().connections += 1;
        state.connections += 1;
        self.source = source;
        if let (Some(number), Some(leave)) = (number, leave) {
            state.change(source, |handshakes| {
                handshakes.insert(number, leave);
            });
        }
        has_room
    }

    /// Its handshake is done: it stays.
    pub(super) fn is_established(&mut self) {
        if let Some(number) = self.handshake.take() {
            self.room.lock().change(self.source, |handshakes| {
                handshakes.remove(&number);
            });
        }
    }

    /// Until it has to go, which may be never.
    pub(super) async fn has_to_go(&mut self) {
        let told = match &mut self.leave {
            Some(leave) => leave.await.is_ok(),
            None => false,
        };
        self.leave = None;
        if !told {
            // Its handshake is no longer counted.
            std::future::pending::<()>().await;
        }
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let number = self.handshake.take();
        self.room.lock().leave(self.source, number);
        self.room.left.notify_waiters();
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::sync::Arc;

    use super::{Most, Place, Room, Source};

    fn source(number: u8) -> Source {
        Source::from(std::net::IpAddr::from([192, 0, 2, number]))
    }

    fn room(connections: usize, of_one: usize, handshakes: usize) -> Arc<Room> {
        Room::new(Most {
            connections,
            of_one,
            handshakes,
        })
    }

    /// Whether it has to go, told at once.
    async fn has_to_go(place: &mut Place) -> bool {
        tokio::select! {
            biased;
            () = place.has_to_go() => true,
            () = std::future::ready(()) => false,
        }
    }

    #[tokio::test]
    async fn the_oldest_handshake_of_whoever_has_most_goes() {
        let room = room(100, 100, 4);
        let mut others = room.enter(source(2)).unwrap();
        let mut own = [(); 3].map(|()| room.enter(source(1)).unwrap());
        let mut late = room.enter(source(3)).unwrap();
        assert!(!has_to_go(&mut others).await, "it is the oldest, but alone");
        assert!(has_to_go(&mut own[0]).await);
        assert!(!has_to_go(&mut own[1]).await);
        assert!(!has_to_go(&mut late).await);
        assert_eq!(room.taken(), (5, 4));
        drop((others, own, late));
        assert_eq!(room.taken(), (0, 0));
        assert!(room.lock().sources.is_empty() && room.lock().crowds.is_empty());
    }

    #[tokio::test]
    async fn of_many_with_one_each_the_oldest_goes() {
        let room = room(100, 100, 3);
        let mut places = [3, 1, 2, 4].map(|number| room.enter(source(number)).unwrap());
        assert!(has_to_go(&mut places[0]).await);
        for place in &mut places[1..] {
            assert!(!has_to_go(place).await);
        }
    }

    #[tokio::test]
    async fn one_source_has_no_more_than_its_share() {
        let room = room(100, 2, 100);
        let mut first = room.enter(source(1)).unwrap();
        let mut second = room.enter(source(1)).unwrap();
        first.is_established();
        let mut third = room.enter(source(1)).unwrap();
        assert!(has_to_go(&mut second).await);
        drop(second);
        third.is_established();
        assert!(room.enter(source(1)).is_none());
        assert!(room.enter(source(2)).is_some());
        assert!(!has_to_go(&mut first).await && !has_to_go(&mut third).await);
    }

    #[tokio::test]
    async fn who_comes_through_a_load_balancer_is_one_of_the_own() {
        let room = room(100, 1, 100);
        let balancer = || room.enter_for_others(source(9));
        let (mut first, mut second, mut third) = (balancer(), balancer(), balancer());
        assert!(first.is_of(source(1)));
        assert!(second.is_of(source(1)), "a handshake gives way");
        assert!(has_to_go(&mut first).await);
        drop(first);
        second.is_established();
        assert!(!third.is_of(source(1)));
        drop((second, third));
        assert_eq!(room.taken(), (0, 0));
        assert!(room.lock().sources.is_empty() && room.lock().crowds.is_empty());
    }

    #[tokio::test]
    async fn a_full_room_makes_room_of_handshakes_or_waits() {
        let room = room(2, 2, 2);
        let mut established = room.enter(source(1)).unwrap();
        established.is_established();
        let mut silent = room.enter(source(1)).unwrap();
        let waiting = tokio::spawn({
            let room = Arc::clone(&room);
            async move { room.ready().await }
        });
        silent.has_to_go().await;
        assert!(!waiting.is_finished(), "its file is still open");
        drop(silent);
        waiting.await.unwrap();
        let mut silent = room.enter(source(2)).unwrap();
        silent.is_established();
        let waiting = tokio::spawn({
            let room = Arc::clone(&room);
            async move { room.ready().await }
        });
        tokio::task::yield_now().await;
        assert!(!waiting.is_finished());
        drop(established);
        waiting.await.unwrap();
    }
}
