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
    /// Handshakes under way: of clients that have sent a record.
    pub(super) handshakes: usize,
}

/// Connections, each in one of these states.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Taken {
    /// They have not sent a record, in which a ClientHello begins.
    pub(super) silent: usize,
    pub(super) handshakes: usize,
    pub(super) established: usize,
}

/// Where there is no room, a connection without a session has to go, of whoever has most of them: the oldest one that
/// says nothing, else the oldest handshake. Who has a session stays.
///
/// Clients that say nothing, or do not end their first record, are no handshakes. They cost a socket: to close one so that it comes again costs more than to
/// keep it.
#[derive(Debug)]
pub(super) struct Room {
    most: Most,
    state: Mutex<State>,
    left: Notify,
}

#[derive(Debug, Default)]
struct State {
    connections: usize,
    /// Connections are numbered in their order.
    next: u64,
    sources: HashMap<Source, Of>,
    /// Those without a session.
    waiting: Crowds,
    /// Those of them that have sent a record.
    handshakes: Crowds,
}

/// Connections by their source.
#[derive(Debug, Default)]
struct Crowds {
    connections: usize,
    sources: BTreeSet<Crowd>,
}

/// How many one source has, and the number of the oldest.
type Crowd = (usize, Reverse<u64>, Source);

/// What one source has.
#[derive(Debug, Default)]
struct Of {
    connections: usize,
    silent: Numbered,
    handshakes: Numbered,
}

/// How each is told that it has to go.
type Numbered = BTreeMap<u64, oneshot::Sender<()>>;

/// A connection's place, given back when it is dropped.
#[derive(Debug)]
pub(super) struct Place {
    room: Arc<Room>,
    source: Source,
    /// Its number, while it has no session.
    number: Option<u64>,
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
        let (sender, leave) = oneshot::channel();
        let number = state.next;
        state.next += 1;
        state.connections += 1;
        state.sources.entry(source).or_default().connections += 1;
        state.change(source, |of| of.silent.insert(number, sender));
        Place {
            room: Arc::clone(self),
            source,
            number: Some(number),
            leave: Some(leave),
        }
    }

    /// What there is.
    pub(super) fn taken(&self) -> Taken {
        let state = self.lock();
        let (waiting, handshakes) = (state.waiting.connections, state.handshakes.connections);
        Taken {
            silent: waiting.saturating_sub(handshakes),
            handshakes,
            established: state.connections.saturating_sub(waiting),
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// Whether a source may have one more, for which one of its own may have to go.
    fn has_room_for(&mut self, source: Source, most: usize) -> bool {
        let of = self.sources.get(&source);
        of.is_none_or(|of| of.connections < most) || self.send_away_of(source)
    }

    /// Has one go of whoever has most without a session, if there is any.
    fn send_away(&mut self) {
        if let Some(source) = self.waiting.largest() {
            self.send_away_of(source);
        }
    }

    fn send_away_of(&mut self, source: Source) -> bool {
        self.send(source, |of| {
            of.silent.pop_first().or_else(|| of.handshakes.pop_first())
        })
    }

    /// Has the oldest handshake go of whoever has most, if there is any.
    fn send_handshake_away(&mut self) {
        if let Some(source) = self.handshakes.largest() {
            self.send(source, |of| of.handshakes.pop_first());
        }
    }

    fn send(
        &mut self,
        source: Source,
        take: impl FnOnce(&mut Of) -> Option<(u64, oneshot::Sender<()>)>,
    ) -> bool {
        let Some((_, leave)) = self.change(source, take) else {
            return false;
        };
        // It may be ending by itself.
        let _ = leave.send(());
        true
    }

    /// A connection of a source is over, and no longer without a session, if it was.
    fn leave(&mut self, source: Source, number: Option<u64>) -> Option<oneshot::Sender<()>> {
        self.connections = self.connections.saturating_sub(1);
        if let Some(of) = self.sources.get_mut(&source) {
            of.connections = of.connections.saturating_sub(1);
        }
        self.change(source, |of| of.remove(number?))
    }

    /// Changes what a source has without a session, and all that is counted of it.
    fn change<T>(&mut self, source: Source, change: impl FnOnce(&mut Of) -> T) -> T {
        let of = self.sources.entry(source).or_default();
        let before = of.crowds(source);
        let changed = change(of);
        let after = of.crowds(source);
        if of.connections == 0 && after == [None, None] {
            self.sources.remove(&source);
        }
        for (index, crowds) in [&mut self.waiting, &mut self.handshakes]
            .into_iter()
            .enumerate()
        {
            crowds.replace(before[index], after[index]);
        }
        changed
    }
}

impl Crowds {
    fn largest(&self) -> Option<Source> {
        self.sources.last().map(|&(.., source)| source)
    }

    fn replace(&mut self, before: Option<Crowd>, after: Option<Crowd>) {
        if let Some(before) = before {
            self.connections -= before.0;
            self.sources.remove(&before);
        }
        if let Some(after) = after {
            self.connections += after.0;
            self.sources.insert(after);
        }
    }
}

impl Of {
    /// Those without a session, and the handshakes of them.
    fn crowds(&self, source: Source) -> [Option<Crowd>; 2] {
        let oldest = |all: &Numbered| all.first_key_value().map(|(number, _)| *number);
        let crowd = |count, oldest: Option<u64>| Some((count, Reverse(oldest?), source));
        let (silent, handshakes) = (oldest(&self.silent), oldest(&self.handshakes));
        let either = silent.into_iter().chain(handshakes).min();
        [
            crowd(self.silent.len() + self.handshakes.len(), either),
            crowd(self.handshakes.len(), handshakes),
        ]
    }

    fn remove(&mut self, number: u64) -> Option<oneshot::Sender<()>> {
        let silent = self.silent.remove(&number);
        silent.or_else(|| self.handshakes.remove(&number))
    }
}

impl Place {
    /// Whose it is, now that it is known. False if that source has as many as it may, and all of them have their session.
    pub(super) fn is_of(&mut self, source: Source) -> bool {
        let mut state = self.room.lock();
        let number = self.number;
        let leave = state.leave(self.source, number);
        let has_room = state.has_room_for(source, self.room.most.of_one);
        state.sources.entry(source).or_default().connections += 1;
        state.connections += 1;
        self.source = source;
        if let (Some(number), Some(leave)) = (number, leave) {
            state.change(source, |of| of.silent.insert(number, leave));
        }
        has_room
    }

    /// It has sent a record: its handshake is under way, for which another one may have to go.
    pub(super) fn begins(&mut self) {
        let Some(number) = self.number else {
            return;
        };
        let mut state = self.room.lock();
        if state.handshakes.connections >= self.room.most.handshakes {
            state.send_handshake_away();
        }
        state.change(self.source, |of| {
            // It may have been told to go meanwhile.
            if let Some(leave) = of.silent.remove(&number) {
                of.handshakes.insert(number, leave);
            }
        });
    }

    /// Its handshake is done: it stays.
    pub(super) fn is_established(&mut self) {
        if let Some(number) = self.number.take() {
            self.room.lock().change(self.source, |of| of.remove(number));
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
            // It has a session.
            std::future::pending::<()>().await;
        }
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let number = self.number.take();
        self.room.lock().leave(self.source, number);
        self.room.left.notify_waiters();
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::sync::Arc;

    use super::{Most, Place, Room, Source, Taken};

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

    /// One that has said something.
    fn speaking(room: &Arc<Room>, number: u8) -> Place {
        let mut place = room.enter(source(number)).unwrap();
        place.begins();
        place
    }

    fn taken(silent: usize, handshakes: usize, established: usize) -> Taken {
        Taken {
            silent,
            handshakes,
            established,
        }
    }

    fn assert_empty(room: &Room) {
        assert_eq!(room.taken(), taken(0, 0, 0));
        let state = room.lock();
        assert!(state.sources.is_empty());
        assert!(state.waiting.sources.is_empty() && state.handshakes.sources.is_empty());
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
        let mut others = speaking(&room, 2);
        let mut own = [(); 3].map(|()| speaking(&room, 1));
        let mut late = speaking(&room, 3);
        assert!(!has_to_go(&mut others).await, "it is the oldest, but alone");
        assert!(has_to_go(&mut own[0]).await);
        assert!(!has_to_go(&mut own[1]).await);
        assert!(!has_to_go(&mut late).await);
        assert_eq!(room.taken().handshakes, 4);
        drop((others, own, late));
        assert_empty(&room);
    }

    #[tokio::test]
    async fn of_many_with_one_each_the_oldest_goes() {
        let room = room(100, 100, 3);
        let mut places = [3, 1, 2, 4].map(|number| speaking(&room, number));
        assert!(has_to_go(&mut places[0]).await);
        for place in &mut places[1..] {
            assert!(!has_to_go(place).await);
        }
    }

    #[tokio::test]
    async fn who_says_nothing_is_no_handshake() {
        let room = room(6, 6, 1);
        let mut silent = [(); 3].map(|()| room.enter(source(1)).unwrap());
        let mut first = speaking(&room, 2);
        for place in silent.iter_mut().chain([&mut first]) {
            assert!(!has_to_go(place).await);
        }
        assert_eq!(room.taken(), taken(3, 1, 0));
        let mut second = speaking(&room, 1);
        assert!(has_to_go(&mut first).await, "there is room for one");
        assert!(!has_to_go(&mut silent[0]).await);
        second.is_established();
        drop(first);
        assert_eq!(room.taken(), taken(3, 0, 1));
        drop((silent, second));
        assert_empty(&room);
    }

    #[tokio::test]
    async fn where_connections_are_too_many_those_that_say_nothing_go_first() {
        let room = room(100, 3, 100);
        let mut handshake = speaking(&room, 1);
        let mut silent = [(); 2].map(|()| room.enter(source(1)).unwrap());
        let mut late = Vec::new();
        for place in &mut silent {
            late.push(speaking(&room, 1));
            assert!(has_to_go(place).await);
            assert!(!has_to_go(&mut handshake).await);
        }
        late.push(speaking(&room, 1));
        assert!(has_to_go(&mut handshake).await, "none is silent");
        assert!(!has_to_go(&mut late[0]).await);
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
        assert_empty(&room);
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
