//! What the surroundings of connections are drawn from, where a study asks about users and not about a grid.
//!
//! A draw is a function of the seed and of the index of a connection, as luck is: connection 17 has one RTT,
//! one response and one place among those that resume, in every arm and in every cell.

mod distribution;
mod joint;
mod session;
#[cfg(test)]
mod tests;
mod write;

use std::borrow::Cow;
use std::num::NonZero;
use std::ops::Range;
use std::sync::Arc;

use lastbyte_link::{Probability, Seed, fraction};
use lastbyte_sizes::Resumption;
use sha2::{Digest, Sha256};

pub(super) use self::distribution::number;
pub use self::distribution::{Distribution, Shape, Weighted};
pub use self::joint::Joint;
pub use self::session::{ByClass, Sessions, Shares};
use super::{Arm, Cell, Delivery, Fact, NamedFile, Parameter, StudyFolder, Traffic, TransportName};

/// What the surroundings of connections are drawn from.
#[derive(Clone, Debug)]
pub struct Population {
    /// Where its luck comes from.
    pub seed: Seed,
    /// Connections, one after the other, that are of one user. What is drawn of the link is drawn once for
    /// all of them.
    pub connections_per_user: NonZero<u32>,
    /// What is drawn alone of the others, each parameter once.
    pub parameters: Vec<(Parameter, Distribution)>,
    /// What connections are sorted by, if it is drawn alone.
    pub class: Option<Weighted>,
    /// Tables whose rows are drawn whole, each on its own.
    pub joint: Vec<Joint>,
    /// What is left of each RTT that is drawn, as with an edge nearer by; all, if nothing is said.
    pub rtt_share: Option<Probability>,
    /// So many resume at least: who would not, does so then.
    pub resumes_least: Option<Probability>,
    /// The share of connections that resume, if it is drawn alone.
    pub shares: Option<Shares>,
    /// Draws that are known already, in place of all else.
    pub listed: Option<Listed>,
    /// The files that it was read from besides the study.
    pub files: Vec<NamedFile>,
    /// SHA-256, in hex, of the files that it was read from besides the study, if there are any.
    pub digest: Option<String>,
    /// What of it the study says itself, where a kind of traffic says the rest.
    pub own: Option<Arc<Population>>,
    /// That kind.
    pub traffic: Option<Traffic>,
}

/// What one connection drew.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Draw {
    /// Whose connection it is, counted from 0.
    pub user: u32,
    /// What it is sorted by.
    pub class: Option<Arc<str>>,
    /// Parameters with their values, as a study would say them.
    pub values: Vec<(Parameter, Arc<str>)>,
    /// How an arm without a word of its own has it.
    session: Option<Resumption>,
}

/// The draws of some connections for one arm.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listed {
    /// The index of the first of them.
    pub first: u32,
    /// The draws, in the order of connections.
    pub draws: Vec<Draw>,
}

impl Draw {
    /// One that was made elsewhere.
    pub fn of_parts(
        user: u32,
        class: Option<Arc<str>>,
        values: Vec<(Parameter, Arc<str>)>,
        session: Option<Resumption>,
    ) -> Draw {
        Draw {
            user,
            class,
            values,
            session,
        }
    }

    /// How the connection begins, where that was drawn.
    pub fn session(&self) -> Option<Resumption> {
        self.session
    }
}

impl Population {
    /// One that draws nothing.
    pub fn empty(seed: Seed) -> Population {
        Population {
            seed,
            connections_per_user: NonZero::<u32>::MIN,
            parameters: Vec::new(),
            class: None,
            joint: Vec::new(),
            rtt_share: None,
            resumes_least: None,
            shares: None,
            listed: None,
            files: Vec::new(),
            digest: None,
            own: None,
            traffic: None,
        }
    }

    /// What a kind of traffic says of it, with who says so.
    pub fn facts(&self) -> Vec<Fact> {
        let both = self.traffic.as_ref().zip(self.own.as_ref());
        both.map_or_else(Vec::new, |(traffic, own)| traffic.facts(own))
    }

    /// The same with what it is silent about as a kind of traffic has it, of which connections draw what `is_drawn` says.
    pub(crate) fn over(
        self,
        traffic: &Traffic,
        is_drawn: &dyn Fn(Parameter) -> bool,
    ) -> Population {
        if self.listed.is_some() {
            return self;
        }
        let work = &traffic.kind().population;
        let own = Arc::new(self);
        let mut all = own.as_ref().clone();
        if own.connections_per_user == NonZero::<u32>::MIN {
            all.connections_per_user = work.connections_per_user;
        }
        let parameters = work.parameters.iter();
        all.parameters
            .extend(parameters.filter(|(one, _)| is_drawn(*one)).cloned());
        let says_sessions = own.draws_sessions();
        if !says_sessions {
            all.resumes_least = work.resumes_least;
            all.shares.clone_from(&work.shares);
        }
        // Who resumes by class needs the classes that its own kind has.
        let is_by_class = !says_sessions && work.shares.iter().any(Shares::are_by_class);
        let has_classes =
            own.class.is_some() || own.joint.iter().any(|joint| !joint.classes().is_empty());
        let keeps_classes = !has_classes || is_by_class;
        if keeps_classes && work.class.is_some() {
            all.class.clone_from(&work.class);
        }
        let joints = work.joint.iter();
        all.joint.extend(joints.filter_map(|joint| {
            joint.only(
                &|parameter| is_drawn(parameter),
                keeps_classes,
                !says_sessions,
            )
        }));
        all.files.extend(work.files.iter().cloned());
        all.digest = match (&own.digest, &work.digest) {
            (Some(own), Some(work)) => {
                let both = Sha256::new_with_prefix(own).chain_update(work);
                Some(hex::encode(both.finalize()))
            }
            (own, work) => own.clone().or_else(|| work.clone()),
        };
        all.own = Some(own);
        all.traffic = Some(traffic.clone());
        all
    }

    /// The same without all that links have.
    pub(crate) fn of_work(mut self) -> Population {
        self.parameters.retain(|(one, _)| !one.is_of_link());
        let joints = self.joint.iter();
        self.joint = joints
            .filter_map(|joint| joint.only(&|parameter| !parameter.is_of_link(), true, true))
            .collect();
        self.rtt_share = None;
        self
    }

    /// Whether connections differ in nothing by it.
    pub(crate) fn draws_nothing(&self) -> bool {
        self.listed.is_none() && self.drawn().next().is_none() && !self.draws_sessions()
    }

    /// Whether it says nothing.
    pub(crate) fn is_empty(&self) -> bool {
        let nothing = Population::empty(self.seed);
        self.to_toml() == nothing.to_toml()
    }

    /// What connection `index` of a sample draws.
    pub fn draw(&self, index: u32) -> Draw {
        if let Some(listed) = &self.listed {
            let place = index.checked_sub(listed.first).map(|place| place as usize);
            let draw = place.and_then(|place| listed.draws.get(place));
            return draw.cloned().unwrap_or_default();
        }
        let user = index / self.connections_per_user;
        let mut draw = Draw {
            user,
            ..Draw::default()
        };
        let mut resumes = None;
        for (number, joint) in self.joint.iter().enumerate() {
            let unit = unit(joint.parameters(), index, user);
            let row = joint.row(match number {
                0 => self.spread("joint 0", unit),
                _ => self.place(&format!("joint {number}"), unit),
            });
            draw.values.extend(row.values);
            draw.class = row.class.or(draw.class);
            resumes = row.resumes.or(resumes);
        }
        if let Some(class) = &self.class {
            draw.class = Some(class.at(self.place("class", user)));
        }
        for (parameter, distribution) in &self.parameters {
            let unit = unit([*parameter].into_iter(), index, user);
            let value = distribution.at(*parameter, |name| {
                self.place(&format!("{parameter}{name}"), unit)
            });
            draw.values.push((*parameter, value));
        }
        if let Some(share) = self.rtt_share {
            let rtts = draw.values.iter_mut();
            for (_, value) in rtts.filter(|(parameter, _)| *parameter == Parameter::RTT) {
                let scaled = number(Parameter::RTT, value).map(|rtt| rtt * share.fraction());
                let text = scaled.and_then(|rtt| distribution::text(Parameter::RTT, rtt));
                *value = text.map_or_else(|| value.clone(), Arc::from);
            }
        }
        let early_data = (self.shares.as_ref()).map_or(Probability::ZERO, |shares| {
            shares.early_data.of(&draw.class)
        });
        let resumes = self.resumes(resumes, &draw.class, index);
        draw.session = resumes.map(|resumes| self.session_of(resumes, early_data, index));
        draw
    }

    /// Whether connection `index` resumes, if anything says so; `column` is what a joint table says. Whoever resumes
    /// does so if more do.
    fn resumes(&self, column: Option<bool>, class: &Option<Arc<str>>, index: u32) -> Option<bool> {
        let place = self.place("resumes", index);
        let least = self.resumes_least.map(Probability::fraction);
        match (column, &self.shares) {
            (Some(resumes), _) => {
                // Of those that don't, as many as are missing.
                let shares = self.joint.iter().filter_map(Joint::resumed_share);
                let share = shares.fold(0.0, |_, share| share);
                let missing = least.map_or(0.0, |least| (least - share) / (1.0 - share));
                Some(resumes || place < missing)
            }
            (None, Some(shares)) => {
                let share = shares.resumes.of(class).fraction();
                Some(place < share.max(least.unwrap_or_default()))
            }
            (None, None) => least.map(|least| place < least),
        }
    }

    /// The largest share that resumes of any class; `None` if nothing says so.
    pub fn most_that_resume(&self) -> Option<f64> {
        let columns = self.joint.iter().filter_map(Joint::resumed_share);
        let shares = self.shares.iter().map(|shares| shares.resumes.most());
        let least = self.resumes_least.iter().map(|least| least.fraction());
        columns.chain(shares).chain(least).reduce(f64::max)
    }

    /// Whether it draws this parameter.
    pub fn draws(&self, parameter: Parameter) -> bool {
        self.drawn().any(|drawn| drawn == parameter)
    }

    /// The parameters that it draws.
    pub fn drawn(&self) -> impl Iterator<Item = Parameter> {
        let joint = self.joint.iter().flat_map(Joint::parameters);
        let alone = self.parameters.iter().map(|(parameter, _)| *parameter);
        let listed = self.listed.iter().filter_map(|listed| listed.draws.first());
        let listed = listed.flat_map(|draw| draw.values.iter().map(|(parameter, _)| *parameter));
        joint.chain(alone).chain(listed)
    }

    /// Whether it says which connections resume.
    pub fn draws_sessions(&self) -> bool {
        let listed = self.listed.as_ref().and_then(|listed| listed.draws.first());
        self.most_that_resume().is_some() || listed.is_some_and(|draw| draw.session.is_some())
    }

    /// The same draws of connections `range`, as they are for `arm`, in so many words.
    #[must_use]
    pub fn listed(&self, arm: &Arm, range: Range<u32>) -> Population {
        let draw = |index| {
            let draw = self.draw(index);
            let session = arm.sessions.of(self, &draw, index, arm.resumption);
            Draw {
                session: Some(session),
                ..draw
            }
        };
        Population {
            connections_per_user: self.connections_per_user,
            listed: Some(Listed {
                first: range.start,
                draws: range.map(draw).collect(),
            }),
            digest: self.digest.clone(),
            ..Population::empty(self.seed)
        }
    }

    /// How connection `index` begins, if so many resume, and so many of these send early data.
    fn drawn_session(
        &self,
        resumes: Probability,
        early_data: Probability,
        index: u32,
    ) -> Resumption {
        let does = self.place("resumes", index) < resumes.fraction();
        self.session_of(does, early_data, index)
    }

    fn session_of(&self, resumes: bool, early_data: Probability, index: u32) -> Resumption {
        match resumes {
            false => Resumption::Full,
            true if self.place("early_data", index) < early_data.fraction() => {
                Resumption::EarlyData
            }
            true => Resumption::Ticket,
        }
    }

    /// What carries each of the first `connections`, if this share of them is over QUIC: as many as are nearest to that, at
    /// random, and independent of all else that they draw.
    pub fn transports(&self, quic_share: Probability, connections: u32) -> Vec<TransportName> {
        let mut order: Vec<u32> = (0..connections).collect();
        order.sort_by(|one, other| {
            let [one, other] = [one, other].map(|index| self.place("transport", *index));
            one.total_cmp(&other)
        });
        let over_quic = (quic_share.fraction() * f64::from(connections)).round() as usize;
        let mut transports = vec![TransportName::Tcp; connections as usize];
        for index in order.into_iter().take(over_quic) {
            if let Some(transport) = transports.get_mut(index as usize) {
                *transport = TransportName::Quic;
            }
        }
        transports
    }

    /// From 0 to 1, without 1: where a connection or a user stands in what `name` is drawn from.
    fn place(&self, name: &str, unit: u32) -> f64 {
        fraction(self.seed.part(&format!("population {name} {unit}")).0)
    }

    /// From 0 to 1, for one thing that is drawn, so evenly over units that each share of that has its share of any
    /// number of them, give or take a few (Weyl 1916): for one thing alone, since two of them would go together.
    fn spread(&self, name: &str, unit: u32) -> f64 {
        /// The golden ratio's fraction, in 2⁻⁶⁴.
        const STEP: u64 = 0x9e37_79b9_7f4a_7c15;
        let start = self.seed.part(&format!("population {name}")).0;
        let place = start.wrapping_add(u64::from(unit).wrapping_mul(STEP));
        (place >> 11) as f64 / (1u64 << 53) as f64
    }
}

/// A link is its user's; all else is each connection's own.
fn unit(mut parameters: impl Iterator<Item = Parameter>, index: u32, user: u32) -> u32 {
    if parameters.any(Parameter::is_of_link) {
        user
    } else {
        index
    }
}

/// Two are the same if they draw the same.
impl PartialEq for Population {
    fn eq(&self, other: &Population) -> bool {
        self.seed == other.seed && self.to_toml() == other.to_toml()
    }
}

impl Eq for Population {}

impl Cell {
    /// The cell of one connection, with what that drew.
    pub fn of_connection(&self, index: u32) -> Cow<'_, Cell> {
        match &self.population {
            None => Cow::Borrowed(self),
            Some(population) => Cow::Owned(self.with(&population.draw(index))),
        }
    }

    /// The cell of a connection that drew this.
    pub fn with(&self, draw: &Draw) -> Cell {
        let mut cell = Cell {
            population: None,
            ..self.clone()
        };
        for (parameter, value) in &draw.values {
            // They were read before.
            let _ = parameter.set(&mut cell, value, &StudyFolder::HERE);
        }
        if cell.check().is_err() {
            // Who got no answer has nothing more to ask.
            cell.requests = 1;
        }
        cell
    }

    /// What connection `index` drew, where a population is measured.
    pub fn draw(&self, index: u32) -> Option<Draw> {
        Some(self.population.as_ref()?.draw(index))
    }

    /// Whose connection `index` is; without a population, each is a user's of its own.
    pub fn user(&self, index: u32) -> u32 {
        let population = self.population.as_ref();
        population.map_or(index, |population| index / population.connections_per_user)
    }

    /// Whether each connection has its own of this, as its kind of traffic says.
    pub(super) fn draws_of_traffic(&self, parameter: Parameter) -> bool {
        let population = self.population.as_ref();
        let own = population.and_then(|population| population.own.as_ref());
        let is_own = own.is_some_and(|own| own.draws(parameter));
        let traffic = self.traffic.as_ref();
        !is_own && traffic.is_some_and(|traffic| traffic.draws(parameter))
    }

    /// Whether each connection has its own of this.
    pub fn draws(&self, parameter: Parameter) -> bool {
        let population = self.population.as_ref();
        population.is_some_and(|population| population.draws(parameter))
    }
}

impl Arm {
    /// How connection `index` in a cell begins.
    pub fn session(&self, cell: &Cell, index: u32) -> Resumption {
        self.session_of(cell, &cell.draw(index).unwrap_or_default(), index)
    }

    /// The same where it is known what the connection drew.
    pub fn session_of(&self, cell: &Cell, draw: &Draw, index: u32) -> Resumption {
        match &cell.population {
            None => self.resumption,
            Some(population) => (self.sessions).of(population, draw, index, self.resumption),
        }
    }

    /// The arm as it is on connections that begin so.
    #[must_use]
    pub fn beginning(&self, session: Resumption) -> Cow<'_, Arm> {
        match (self.resumption == session, self.sessions) {
            (true, Sessions::Fixed | Sessions::Population) => Cow::Borrowed(self),
            _ => Cow::Owned(Arm {
                resumption: session,
                sessions: Sessions::Fixed,
                // A session that is resumed has no certificates to deliver.
                delivery: match session {
                    Resumption::Full => self.delivery.clone(),
                    Resumption::Ticket | Resumption::EarlyData => Delivery::Full,
                },
                ..self.clone()
            }),
        }
    }

    /// The arm as it is on connection `index` in a cell.
    pub fn of_connection(&self, cell: &Cell, index: u32) -> Cow<'_, Arm> {
        self.beginning(self.session(cell, index))
    }

    /// How its connections may begin in a cell, each once.
    pub fn possible_sessions(&self, cell: &Cell) -> Vec<Resumption> {
        match &cell.population {
            None => vec![self.resumption],
            Some(population) => self.sessions.possible(population, self.resumption),
        }
    }
}
