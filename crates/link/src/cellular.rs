//! Rate traces of LTE and 5G, by a stated model.
//!
//! In each millisecond, a base station can send as many bits as there are resource elements in it, times layers, times what each
//! element carries by the channel quality indicator (CQI) that the user's SINR allows. The SINR has a mean, and around it
//! two Markov chains: fading, within wavelengths, and shadowing, within tens of metres. The
//! user has a share of the cell. Nothing goes while a handover interrupts, nor, from idle, until the radio is connected.
//!
//! Each number has its source beside it. One that is called stated has none: it is chosen here.

use std::num::NonZero;
use std::time::Duration;

use crate::luck::mix;
use crate::{Probability, Seed, Side, Trace, UnknownName};

mod chain;
mod tables;
#[cfg(test)]
mod tests;

use chain::{Chain, Fading, Shadowing};
use tables::{LTE_BANDWIDTHS, LTE_CQI, NR_BANDWIDTHS, NR_CQI, Scheme};

/// What a user's radio is, where, and how it moves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Radio {
    /// By which standard.
    pub generation: Generation,
    /// Of the cell's only carrier.
    pub bandwidth: Bandwidth,
    /// How well it hears the cell.
    pub signal: Signal,
    /// How fast it moves.
    pub motion: Motion,
    /// What of the cell it gets.
    pub share: Share,
    /// What it was doing before.
    pub begins: Begins,
}

/// A standard of radio.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Generation {
    /// E-UTRA, by frequency division, in band 3: 1.8 GHz, two layers down, one up.
    Lte,
    /// NR, by time division, in band n78: 3.5 GHz, subcarriers of 30 kHz, four layers down, one up.
    Nr,
}

crate::named!(Generation, "generation", { Lte => "LTE", Nr => "5G" });

/// How wide a carrier is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bandwidth {
    /// As the standards write it, such as `20MHz`.
    pub name: &'static str,
    /// Resource blocks, of twelve subcarriers each.
    pub resource_blocks: u32,
}

/// The mean SINR of what a user hears, all stated. Up, it is 5 dB less.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Signal {
    /// 20 dB: near the base station.
    Good,
    /// 10 dB.
    Fair,
    /// 2 dB: where the next cell is as near.
    Edge,
}

crate::named!(Signal, "signal", { Good => "good", Fair => "fair", Edge => "edge" });

/// How a user moves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Motion {
    /// Not at all; what is around moves, and has the radio fade as if it walked.
    Standing,
    /// By 3 km/h, as those indoors of 3GPP TR 38.913, table 6.1.4-1 (2017).
    Walking,
    /// By 30 km/h, as those in cars of the same table.
    Driving,
}

crate::named!(Motion, "motion", {
    Standing => "standing", Walking => "walking", Driving => "driving"
});

/// What a user gets of a cell's resource blocks, in millionths: more than nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Share(NonZero<u32>);

/// What a radio was doing before a trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Begins {
    /// It was connected.
    Connected,
    /// Nothing: it was idle, and connects first.
    Idle,
}

impl Generation {
    /// The widths that its carriers have.
    #[must_use]
    pub fn bandwidths(self) -> &'static [Bandwidth] {
        match self {
            Generation::Lte => LTE_BANDWIDTHS,
            Generation::Nr => NR_BANDWIDTHS,
        }
    }

    /// The width of this name.
    ///
    /// # Errors
    ///
    /// When carriers have no such width.
    pub fn bandwidth(self, name: &str) -> Result<Bandwidth, UnknownName> {
        let all = self.bandwidths();
        let found = all.iter().find(|one| one.name.eq_ignore_ascii_case(name));
        found.copied().ok_or_else(|| UnknownName {
            kind: "bandwidth",
            text: name.to_owned(),
            hint: format!(
                "{self} has {}",
                all.iter()
                    .map(|one| one.name)
                    .collect::<Vec<_>>()
                    .join(", ")
            ),
        })
    }

    /// How long it takes from idle until data goes.
    #[must_use]
    pub fn promotion(self) -> Duration {
        match self {
            // Huang et al., "A Close Examination of Performance and Power Characteristics of 4G LTE Networks", MobiSys 2012: the
            // mean of a commercial network's.
            Generation::Lte => Duration::from_millis(260),
            // Stated: as LTE's, since as many messages are exchanged (TS 38.331, section 5.3.3).
            Generation::Nr => Duration::from_millis(260),
        }
    }

    /// How long a handover interrupts.
    #[must_use]
    pub fn interruption(self) -> Duration {
        match self {
            // 3GPP TR 36.881, section 5.2 (2016): 49.5 ms is typical.
            Generation::Lte => Duration::from_millis(50),
            // Stated: as LTE's, whose steps it has; what TS 38.300 has besides, without interruption (DAPS), is not what networks do.
            Generation::Nr => Duration::from_millis(50),
        }
    }

    fn carrier_hertz(self) -> f64 {
        match self {
            Generation::Lte => 1.8e9,
            Generation::Nr => 3.5e9,
        }
    }

    fn cqi(self) -> &'static [Scheme] {
        match self {
            Generation::Lte => &LTE_CQI,
            Generation::Nr => &NR_CQI,
        }
    }

    /// Antennas that a user's radio has: TS 36.101, section 7.2, and TS 38.101-1, section 7.2, which asks for four in n78. Up, it
    /// sends with one.
    fn layers(self, toward: Side) -> u32 {
        match (self, toward) {
            (Generation::Lte, Side::Client) => 2,
            (Generation::Nr, Side::Client) => 4,
            (_, Side::Server) => 1,
        }
    }

    /// Resource elements of a block that carry data in a millisecond, in hundredths.
    fn elements(self, toward: Side, millisecond: u32) -> u64 {
        const SUBCARRIERS: u64 = 12;
        const HUNDREDTHS: u64 = 100;
        match (self, toward) {
            // Of 14 symbols, 3 are of control (as TS 36.213, section 7.2.3, has it for the CQI), and 12 elements of the others are
            // reference signals of two antennas (TS 36.211, section 6.10.1.2).
            (Generation::Lte, Side::Client) => (11 * SUBCARRIERS - 12) * HUNDREDTHS,
            // Two symbols are reference signals: TS 36.211, section 5.5.2.1.
            (Generation::Lte, Side::Server) => 12 * SUBCARRIERS * HUNDREDTHS,
            // Overheads are TS 38.306's, section 4.1.2: 14 % down and 8 % up.
            (Generation::Nr, Side::Client) => DOWN_SYMBOLS.at(millisecond) * SUBCARRIERS * 86,
            (Generation::Nr, Side::Server) => UP_SYMBOLS.at(millisecond) * SUBCARRIERS * 92,
        }
    }
}

/// Symbols of each of five milliseconds.
struct Symbols([u8; 5]);

/// Stated: slots of half a millisecond go down, down, down, special, up. A special one has ten symbols down, two of silence and
/// two up that carry no data.
const DOWN_SYMBOLS: Symbols = Symbols([28, 24, 14, 28, 10]);
const UP_SYMBOLS: Symbols = Symbols([0, 0, 14, 0, 14]);

impl Symbols {
    fn at(&self, millisecond: u32) -> u64 {
        let [.., last] = self.0;
        let place = millisecond as usize % self.0.len();
        self.0.get(place).copied().unwrap_or(last).into()
    }
}

impl Signal {
    fn decibels(self, toward: Side) -> f64 {
        let down = match self {
            Signal::Good => 20.0,
            Signal::Fair => 10.0,
            Signal::Edge => 2.0,
        };
        match toward {
            Side::Client => down,
            // Stated: a phone sends with less power. It has LTE carry two to three times as much down as up, where Huang et al.
            // (MobiSys 2012) measured medians of 13 and 6 Mbit/s.
            Side::Server => down - 5.0,
        }
    }
}

impl Motion {
    fn metres_per_second(self) -> f64 {
        const KILOMETRES_PER_HOUR: f64 = 1.0 / 3.6;
        match self {
            Motion::Standing => 0.0,
            Motion::Walking => 3.0 * KILOMETRES_PER_HOUR,
            Motion::Driving => 30.0 * KILOMETRES_PER_HOUR,
        }
    }

    /// How often the carrier's phase turns, at most.
    fn doppler_hertz(self, carrier_hertz: f64) -> f64 {
        const LIGHT: f64 = 299_792_458.0;
        let surroundings = Motion::Walking.metres_per_second();
        self.metres_per_second().max(surroundings) * carrier_hertz / LIGHT
    }
}

impl Share {
    const MILLIONTHS: u32 = 1_000_000;

    /// To a millionth; `None` for less.
    #[must_use]
    pub fn new(share: Probability) -> Option<Share> {
        let millionths = share.fraction() * f64::from(Share::MILLIONTHS);
        NonZero::new(millionths.round() as u32).map(Share)
    }
}

/// Parts of a bit, in which all that elements carry is whole: code rates are 1024ths, overheads hundredths, shares millionths.
const PARTS: u64 = 1024 * 100 * Share::MILLIONTHS as u64;

impl Radio {
    /// What this radio can send toward one end, by the luck of a seed: for `length`, in whole milliseconds and one at least. Both
    /// directions of a seed are of one user, who moves and hands over in both.
    ///
    /// A packet's opportunity comes at the end of the millisecond that has its last bit. What is left at the end gets one there,
    /// so that the trace ends when it was asked to.
    ///
    /// `None` when it has more than [`Trace::MOST`].
    #[must_use]
    pub fn trace(&self, name: &str, toward: Side, seed: Seed, length: Duration) -> Option<Trace> {
        const OPPORTUNITY: u64 = Trace::OPPORTUNITY as u64 * 8 * PARTS;
        let end = u32::try_from(length.as_millis()).unwrap_or(u32::MAX);
        let end = NonZero::new(end).unwrap_or(NonZero::<u32>::MIN);
        let mut opportunities = Vec::new();
        let mut waiting = 0;
        for (at, capacity) in (1..=end.get()).zip(self.capacities(toward, seed)) {
            waiting += capacity;
            let whole = waiting / OPPORTUNITY;
            waiting %= OPPORTUNITY;
            if opportunities.len() as u64 + whole > Trace::MOST as u64 {
                return None;
            }
            opportunities.extend((0..whole).map(|_| at));
        }
        Trace::new(name, end, opportunities)
    }

    /// What goes in each millisecond, in [`PARTS`] of a bit.
    fn capacities(&self, toward: Side, seed: Seed) -> impl Iterator<Item = u64> {
        let radio = *self;
        let (mut fading, mut shadowing) = self.chains(toward, seed);
        let bits = self.bits(toward);
        let mut handovers = Handovers::of(self, seed);
        (0..).map(move |millisecond| {
            let row = bits.get(shadowing.state());
            let bits = row.and_then(|row| row.get(fading.state()));
            let is_silent = handovers.interrupt(millisecond) || radio.is_promoted_at(millisecond);
            fading.advance();
            shadowing.advance();
            if is_silent {
                return 0;
            }
            radio.capacity(bits.copied().unwrap_or_default(), toward, millisecond)
        })
    }

    /// What goes in a millisecond whose elements carry so many 1024ths of a bit.
    fn capacity(&self, bits: u64, toward: Side, millisecond: u32) -> u64 {
        bits * self.generation.elements(toward, millisecond)
            * u64::from(self.bandwidth.resource_blocks)
            * u64::from(self.share.0.get())
    }

    /// Where frequencies divide the directions, each fades by itself.
    fn chains(&self, toward: Side, seed: Seed) -> (Chain, Chain) {
        let doppler = self.motion.doppler_hertz(self.generation.carrier_hertz());
        let fading = match (self.generation, toward) {
            (Generation::Lte, Side::Client) => "fading down",
            (Generation::Lte, Side::Server) => "fading up",
            (Generation::Nr, _) => "fading",
        };
        (
            Fading::chain(doppler, seed.part(fading)),
            Shadowing::chain(self.motion.metres_per_second(), seed.part("shadowing")),
        )
    }

    /// 1024ths of a bit that an element carries in all its layers, by states of shadowing and of fading.
    fn bits(&self, toward: Side) -> Vec<Vec<u64>> {
        let layers = self.generation.layers(toward);
        let mean = self.signal.decibels(toward);
        let of = |shadow: f64, gain: f64| {
            let sinr = 10_f64.powf((mean + shadow) / 10.0) * gain;
            // As many layers as carry most, among which the power is divided.
            let of_layers = (1..=layers).map(|layers| {
                let each = tables::bits(self.generation.cqi(), sinr / f64::from(layers));
                each * u64::from(layers)
            });
            of_layers.max().unwrap_or_default()
        };
        let gains = Fading::gains();
        let shadows = Shadowing::decibels();
        let row = |shadow: f64| gains.iter().map(|gain| of(shadow, *gain)).collect();
        shadows.into_iter().map(row).collect()
    }

    fn is_promoted_at(&self, millisecond: u32) -> bool {
        match self.begins {
            Begins::Connected => false,
            Begins::Idle => u128::from(millisecond) < self.generation.promotion().as_millis(),
        }
    }
}

/// When a user changes cells: at random, as often as the sides of cells are passed.
struct Handovers {
    /// That one begins in a millisecond, of 2^64.
    chance: u64,
    interruption: u32,
    /// The first millisecond in which data goes again.
    over: u32,
    seed: Seed,
}

impl Handovers {
    /// Between base stations: 3GPP TR 36.814, table A.2.1.1-1, case 1 (2010), and TR 38.913, table 6.1.4-1, urban macro.
    const DISTANCE_METRES: f64 = 500.0;

    fn of(radio: &Radio, seed: Seed) -> Handovers {
        let a_second = radio.motion.metres_per_second() / Handovers::DISTANCE_METRES;
        let interruption = radio.generation.interruption().as_millis();
        Handovers {
            chance: chain::chance(a_second / 1000.0),
            interruption: u32::try_from(interruption).unwrap_or(u32::MAX),
            over: 0,
            seed: seed.part("handover"),
        }
    }

    /// Whether one interrupts in this millisecond, of which each is asked for in its turn.
    fn interrupt(&mut self, millisecond: u32) -> bool {
        if millisecond >= self.over && draw(self.seed, millisecond.into()) < self.chance {
            self.over = millisecond.saturating_add(self.interruption);
        }
        millisecond < self.over
    }
}

/// 64 even bits.
fn draw(seed: Seed, number: u64) -> u64 {
    mix(mix(seed.0) ^ number)
}
