//! How many connections there may be, and of whom.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use nix::sys::resource::{Resource, getrlimit, setrlimit};
use tokio::sync::Notify;

use super::source::Source;

/// For how many connections there are files: each takes two, and the program has some of its own.
/// It is as many as this user may have.
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

/// With fewer places than this, those who say nothing would have all.
pub(super) const FEWEST: usize = 16;

/// Why a connection goes that waited for its client.
pub(super) const MADE_ROOM: &str = "it had to make room for others";

/// How much room there is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Most {
    /// Connections at a time.
    pub(super) connections: usize,
    /// Those of one source, while at most half of all places are taken.
    pub(super) of_one: usize,
    /// The same, when more are: a few sources are not to have all.
    pub(super) of_one_in_a_crowd: usize,
    /// Handshakes under way: of clients that have sent a record.
    pub(super) handshakes: usize,
}

impl Most {
    /// What one source may have, where so many places are taken.
    fn share(&self, taken: usize) -> usize {
        if taken < self.connections.div_ceil(2) {
            self.of_one
        } else {
            self.of_one_in_a_crowd
        }
    }
}

/// Connections, each in one of these states.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Taken {
    /// They have not sent a record, in which a ClientHello begins.
    pub(super) silent: usize,
    pub(super) handshakes: usize,
    pub(super) established: usize,
}

/// Where there is no room, a connection has to go that waits for its client, of whoever has most of
/// them: the oldest one that says nothing, else the session that has rested for longest, else the
/// oldest handshake. A session rests while it has brought nothing yet, and between requests where
/// those are read. All others stay.
///
/// Clients that say nothing, or do not end their first record, are no handshakes. They cost a
/// socket: to close one so that it comes again costs more than to keep it.
#[derive(Debug)]
pub(super) struct Room {
    most: Most,
    state: Mutex<State>,
    left: Notify,
}

#[derive(Debug, Default)]
struct State {
    connections: usize,
    /// What waits is numbered in the order in which it began to.
    next: u64,
    sources: HashMap<Source, Of>,
    /// Those that wait for their client.
    waiting: Crowds,
    /// The handshakes among them.
    handshakes: Crowds,
    /// The sessions among them.
    resting: usize,
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
    resting: Numbered,
    handshakes: Numbered,
}

/// What notifies each that it has to go.
type Numbered = BTreeMap<u64, Arc<Leave>>;

/// Whether a connection has to go. Once it has, it does: room was counted on.
#[derive(Debug, Default)]
struct Leave {
    is_due: AtomicBool,
    due: Notify,
}

/// A connection's place, given back when it is dropped.
#[derive(Debug)]
pub(super) struct Place(Arc<Spot>);

/// Where a connection's place is, for whoever sees what its client does.
#[derive(Debug)]
pub(super) struct Spot {
    room: Arc<Room>,
    at: Mutex<At>,
    leave: Arc<Leave>,
}

#[derive(Debug)]
struct At {
    source: Source,
    /// Its number, while it waits for its client.
    number: Option<u64>,
    /// The place was given back.
    is_over: bool,
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

    /// Takes a connection in. None if its source has as many as it may, and none of them waits for
    /// its client.
    pub(super) fn enter(self: &Arc<Self>, source: Source) -> Option<Place> {
        let has_room = self.lock().has_room_for(source, &self.most);
        has_room.then(|| self.enter_for_others(source))
    }

    /// Takes a connection in whose source is yet to be announced ([`Place::is_of`]).
    pub(super) fn enter_for_others(self: &Arc<Self>, source: Source) -> Place {
        let mut state = self.lock();
        let leave = Arc::new(Leave::default());
        let number = state.number();
        state.connections += 1;
        state.sources.entry(source).or_default().connections += 1;
        state.change(source, |of| of.silent.insert(number, Arc::clone(&leave)));
        Place(Arc::new(Spot {
            room: Arc::clone(self),
            at: Mutex::new(At {
                source,
                number: Some(number),
                is_over: false,
            }),
            leave,
        }))
    }

    /// What there is.
    pub(super) fn taken(&self) -> Taken {
        let state = self.lock();
        let (waiting, handshakes) = (state.waiting.connections, state.handshakes.connections);
        let unestablished = waiting.saturating_sub(state.resting);
        Taken {
            silent: unestablished.saturating_sub(handshakes),
            handshakes,
            established: state.connections.saturating_sub(unestablished),
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn number(&mut self) -> u64 {
        self.next += 1;
        self.next
    }

    /// Whether a source may have one more, for which one of its own may have to go.
    fn has_room_for(&mut self, source: Source, most: &Most) -> bool {
        let share = most.share(self.connections);
        let of = self.sources.get(&source);
        of.is_none_or(|of| of.connections < share) || self.send_away_of(source)
    }

    /// Has one go of whoever has most that wait for their client, if there is any.
    fn send_away(&mut self) {
        if let Some(source) = self.waiting.largest() {
            self.send_away_of(source);
        }
    }

    fn send_away_of(&mut self, source: Source) -> bool {
        self.send(source, |of| {
            let first = of.silent.pop_first();
            let first = first.or_else(|| of.resting.pop_first());
            first.or_else(|| of.handshakes.pop_first())
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
        take: impl FnOnce(&mut Of) -> Option<(u64, Arc<Leave>)>,
    ) -> bool {
        let Some((_, leave)) = self.change(source, take) else {
            return false;
        };
        leave.is_due.store(true, Ordering::Release);
        leave.due.notify_waiters();
        true
    }

    /// A connection of a source is over, and no longer waits, if it did.
    fn leave(&mut self, source: Source, number: Option<u64>) -> Option<Arc<Leave>> {
        self.connections = self.connections.saturating_sub(1);
        if let Some(of) = self.sources.get_mut(&source) {
            of.connections = of.connections.saturating_sub(1);
        }
        self.change(source, |of| of.remove(number?))
    }

    /// Changes what of a source waits, and all that is counted of it.
    fn change<T>(&mut self, source: Source, change: impl FnOnce(&mut Of) -> T) -> T {
        let of = self.sources.entry(source).or_default();
        let (before, rested) = (of.crowds(source), of.resting.len());
        let changed = change(of);
        let after = of.crowds(source);
        self.resting = (self.resting + of.resting.len()).saturating_sub(rested);
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
    /// Those that wait for their client, and the handshakes of them.
    fn crowds(&self, source: Source) -> [Option<Crowd>; 2] {
        let crowd = |all: &[&Numbered]| {
            let oldest = all.iter().filter_map(|all| all.first_key_value());
            let oldest = oldest.map(|(number, _)| *number).min()?;
            let count = all.iter().map(|all| all.len()).sum();
            Some((count, Reverse(oldest), source))
        };
        [
            crowd(&[&self.silent, &self.resting, &self.handshakes]),
            crowd(&[&self.handshakes]),
        ]
    }

    fn remove(&mut self, number: u64) -> Option<Arc<Leave>> {
        let removed = self.silent.remove(&number);
        let removed = removed.or_else(|| self.resting.remove(&number));
        removed.or_else(|| self.handshakes.remove(&number))
    }
}

impl Place {
    /// Whose it is, now that it is known. False if that source has as many as it may, and none of
    /// them waits for its client.
    pub(super) fn is_of(&self, source: Source) -> bool {
        let mut at = self.0.at();
        let mut state = self.0.room.lock();
        let leave = state.leave(at.source, at.number);
        let has_room = state.has_room_for(source, &self.0.room.most);
        state.sources.entry(source).or_default().connections += 1;
        state.connections += 1;
        at.source = source;
        if let (Some(number), Some(leave)) = (at.number, leave) {
            state.change(source, |of| of.silent.insert(number, leave));
        }
        has_room
    }

    /// It has sent a record: its handshake is under way, for which another one may have to go.
    pub(super) fn begins(&self) {
        let at = self.0.at();
        let Some(number) = at.number else {
            return;
        };
        let mut state = self.0.room.lock();
        if state.handshakes.connections >= self.0.room.most.handshakes {
            state.send_handshake_away();
        }
        state.change(at.source, |of| {
            // It may have been notified to go meanwhile.
            if let Some(leave) = of.silent.remove(&number) {
                of.handshakes.insert(number, leave);
            }
        });
    }

    /// Its handshake is done: it has a session, which rests.
    pub(super) fn is_established(&self) {
        self.0.speaks();
        self.0.rests();
    }

    /// Has somebody ask for its room.
    #[cfg(test)]
    pub(super) fn make_room(&self) {
        self.0.room.lock().send_away();
    }

    /// The same place, for whoever sees what its client does. It says nothing once the place was
    /// given back.
    pub(super) fn spot(&self) -> Arc<Spot> {
        Arc::clone(&self.0)
    }

    /// Until it has to go, which may be never.
    pub(super) async fn has_to_go(&self) {
        self.0.has_to_go().await;
    }
}

impl Spot {
    fn at(&self) -> MutexGuard<'_, At> {
        self.at.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Until it has to go, which may be never.
    pub(super) async fn has_to_go(&self) {
        loop {
            let due = self.leave.due.notified();
            if self.leave.is_due.load(Ordering::Acquire) {
                return;
            }
            due.await;
        }
    }

    /// Its client has asked for something: it stays.
    pub(super) fn speaks(&self) {
        let mut at = self.at();
        if let Some(number) = at.number.take() {
            let mut state = self.room.lock();
            state.change(at.source, |of| of.remove(number));
        }
    }

    /// It waits for its client again, which may have to go for others.
    pub(super) fn rests(&self) {
        let mut at = self.at();
        let is_due = self.leave.is_due.load(Ordering::Acquire);
        if at.is_over || is_due || at.number.is_some() {
            return;
        }
        let mut state = self.room.lock();
        let number = state.number();
        at.number = Some(number);
        state.change(at.source, |of| {
            of.resting.insert(number, Arc::clone(&self.leave))
        });
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut at = self.0.at();
        at.is_over = true;
        let number = at.number.take();
        self.0.room.lock().leave(at.source, number);
        drop(at);
        self.0.room.left.notify_waiters();
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
            of_one_in_a_crowd: of_one,
            handshakes,
        })
    }

    /// One that has sent something.
    fn speaking(room: &Arc<Room>, number: u8) -> Place {
        let place = room.enter(source(number)).unwrap();
        place.begins();
        place
    }

    /// It has a session, and has asked for something.
    fn asks(place: &Place) {
        place.is_established();
        place.spot().speaks();
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
        assert_eq!(state.resting, 0);
    }

    /// Whether it has to go, without waiting.
    async fn has_to_go(place: &Place) -> bool {
        tokio::select! {
            biased;
            () = place.has_to_go() => true,
            () = std::future::ready(()) => false,
        }
    }

    #[tokio::test]
    async fn the_oldest_handshake_of_whoever_has_most_goes() {
        let room = room(100, 100, 4);
        let others = speaking(&room, 2);
        let own = [(); 3].map(|()| speaking(&room, 1));
        let late = speaking(&room, 3);
        assert!(!has_to_go(&others).await, "it is the oldest, but alone");
        assert!(has_to_go(&own[0]).await);
        assert!(!has_to_go(&own[1]).await);
        assert!(!has_to_go(&late).await);
        assert_eq!(room.taken().handshakes, 4);
        drop((others, own, late));
        assert_empty(&room);
    }

    #[tokio::test]
    async fn of_many_with_one_each_the_oldest_goes() {
        let room = room(100, 100, 3);
        let places = [3, 1, 2, 4].map(|number| speaking(&room, number));
        assert!(has_to_go(&places[0]).await);
        for place in &places[1..] {
            assert!(!has_to_go(place).await);
        }
    }

    #[tokio::test]
    async fn who_says_nothing_is_no_handshake() {
        let room = room(6, 6, 1);
        let silent = [(); 3].map(|()| room.enter(source(1)).unwrap());
        let first = speaking(&room, 2);
        for place in silent.iter().chain([&first]) {
            assert!(!has_to_go(place).await);
        }
        assert_eq!(room.taken(), taken(3, 1, 0));
        let second = speaking(&room, 1);
        assert!(has_to_go(&first).await, "there is room for one");
        assert!(!has_to_go(&silent[0]).await);
        second.is_established();
        drop(first);
        assert_eq!(room.taken(), taken(3, 0, 1));
        drop((silent, second));
        assert_empty(&room);
    }

    #[tokio::test]
    async fn where_connections_are_too_many_those_that_say_nothing_go_first() {
        let room = room(100, 3, 100);
        let handshake = speaking(&room, 1);
        let silent = [(); 2].map(|()| room.enter(source(1)).unwrap());
        let mut late = Vec::new();
        for place in &silent {
            late.push(speaking(&room, 1));
            assert!(has_to_go(place).await);
            assert!(!has_to_go(&handshake).await);
        }
        late.push(speaking(&room, 1));
        assert!(has_to_go(&handshake).await, "none is silent");
        assert!(!has_to_go(&late[0]).await);
    }

    #[tokio::test]
    async fn one_source_has_no_more_than_its_share() {
        let room = room(100, 2, 100);
        let first = room.enter(source(1)).unwrap();
        let second = room.enter(source(1)).unwrap();
        asks(&first);
        let third = room.enter(source(1)).unwrap();
        assert!(has_to_go(&second).await);
        drop(second);
        asks(&third);
        assert!(room.enter(source(1)).is_none());
        assert!(room.enter(source(2)).is_some());
        assert!(!has_to_go(&first).await && !has_to_go(&third).await);
    }

    #[tokio::test]
    async fn who_comes_through_a_load_balancer_is_one_of_the_own() {
        let room = room(100, 1, 100);
        let balancer = || room.enter_for_others(source(9));
        let (first, second, third) = (balancer(), balancer(), balancer());
        assert!(first.is_of(source(1)));
        assert!(second.is_of(source(1)), "a handshake gives way");
        assert!(has_to_go(&first).await);
        drop(first);
        asks(&second);
        assert!(!third.is_of(source(1)));
        drop((second, third));
        assert_empty(&room);
    }

    #[tokio::test]
    async fn a_full_room_makes_room_of_handshakes_or_waits() {
        let room = room(2, 2, 2);
        let established = room.enter(source(1)).unwrap();
        asks(&established);
        let silent = room.enter(source(1)).unwrap();
        let waiting = tokio::spawn({
            let room = Arc::clone(&room);
            async move { room.ready().await }
        });
        silent.has_to_go().await;
        assert!(!waiting.is_finished(), "its file is still open");
        drop(silent);
        waiting.await.unwrap();
        let silent = room.enter(source(2)).unwrap();
        asks(&silent);
        let waiting = tokio::spawn({
            let room = Arc::clone(&room);
            async move { room.ready().await }
        });
        tokio::task::yield_now().await;
        assert!(!waiting.is_finished());
        drop(established);
        waiting.await.unwrap();
    }

    /// Two sources with sessions that bring nothing hold every place.
    #[tokio::test]
    async fn a_session_that_rests_makes_room_before_the_handshake_of_another() {
        let room = room(6, 6, 6);
        let held: Vec<_> = [1, 2, 1, 2, 1]
            .map(|number| {
                let place = speaking(&room, number);
                place.is_established();
                place
            })
            .into();
        let other = speaking(&room, 3);
        assert_eq!(room.taken(), taken(0, 1, 5));
        let waiting = tokio::spawn({
            let room = Arc::clone(&room);
            async move { room.ready().await }
        });
        held[0].has_to_go().await;
        for place in held[1..].iter().chain([&other]) {
            assert!(!has_to_go(place).await);
        }
        drop(held);
        waiting.await.unwrap();
        drop(other);
        assert_empty(&room);
    }

    #[tokio::test]
    async fn the_session_that_has_rested_for_longest_goes_and_none_that_asks() {
        let room = room(100, 3, 100);
        let places = [(); 3].map(|()| speaking(&room, 1));
        places.iter().for_each(Place::is_established);
        places[0].spot().speaks();
        places[1].spot().speaks();
        places[1].spot().rests();
        let fourth = room.enter(source(1)).unwrap();
        assert!(has_to_go(&places[2]).await);
        // Room was counted on: what comes too late changes nothing.
        places[2].spot().speaks();
        places[2].spot().rests();
        asks(&fourth);
        let fifth = room.enter(source(1)).unwrap();
        assert!(has_to_go(&places[1]).await);
        asks(&fifth);
        assert!(room.enter(source(1)).is_none());
        let spot = places[0].spot();
        drop((places, fourth, fifth));
        // Who still sees a client has no place.
        spot.rests();
        assert_empty(&room);
    }

    #[test]
    fn one_source_has_less_in_a_crowd() {
        let room = Room::new(Most {
            connections: 16,
            of_one: 8,
            of_one_in_a_crowd: 2,
            handshakes: 16,
        });
        let enter = |number: u8| {
            let place = room.enter(source(number))?;
            asks(&place);
            Some(place)
        };
        let first: Vec<_> = (0..16).map_while(|_| enter(1)).collect();
        assert_eq!(first.len(), 8);
        for number in 2..5 {
            let more: Vec<_> = (0..16).map_while(|_| enter(number)).collect();
            assert_eq!(more.len(), 2);
            std::mem::forget(more);
        }
        assert!(enter(5).is_some(), "three sources have not taken all");
    }
}
