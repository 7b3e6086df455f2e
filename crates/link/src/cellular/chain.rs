//! Markov chains whose states lead to their neighbours only.

use crate::Seed;

/// Such a chain, in time.
///
/// From each state to the next one, and back, as often a second as levels are crossed: Wang and Moayeri, "Finite-state Markov channel:
/// a useful model for radio communication channels", IEEE Transactions on Vehicular Technology 44(1), 1995. As often up as
/// down, so the shares of time that states have are exactly those which the rates are made of.
#[derive(Clone, Debug)]
pub(super) struct Chain {
    /// That a step leads up and down from each state, of 2^64.
    chances: Vec<(u64, u64)>,
    /// In a millisecond.
    steps: u32,
    state: usize,
    seed: Seed,
    drawn: u64,
}

/// How often a second a chain goes from one state to the next, when it is there, and back.
#[derive(Clone, Copy, Debug)]
pub(super) struct Edge {
    up: f64,
    down: f64,
}

impl Chain {
    /// Between states one more than edges, from `begin`.
    fn new(edges: &[Edge], begin: usize, seed: Seed) -> Chain {
        /// That a step leaves a state, at most. Steps are as short as that needs.
        const LEAVES: f64 = 0.25;
        const MILLISECOND: f64 = 1e-3;
        let up = edges.iter().map(|edge| edge.up).chain([0.0]);
        let down = [0.0].into_iter().chain(edges.iter().map(|edge| edge.down));
        let rates: Vec<(f64, f64)> = up.zip(down).collect();
        let most = rates.iter().map(|(up, down)| up + down).fold(0.0, f64::max);
        let steps = (most * MILLISECOND / LEAVES).ceil().max(1.0);
        let of_step = |rate: f64| chance(rate * MILLISECOND / steps);
        Chain {
            chances: rates
                .into_iter()
                .map(|(up, down)| (of_step(up), of_step(down)))
                .collect(),
            steps: steps as u32,
            state: begin.min(edges.len()),
            seed,
            drawn: 0,
        }
    }

    /// Where it is, counted from 0.
    pub(super) fn state(&self) -> usize {
        self.state
    }

    /// Goes on by a millisecond.
    pub(super) fn advance(&mut self) {
        for _ in 0..self.steps {
            let draw = super::draw(self.seed, self.drawn);
            self.drawn += 1;
            let (up, down) = self.chances.get(self.state).copied().unwrap_or_default();
            if draw < up {
                self.state += 1;
            } else if draw - up < down {
                self.state = self.state.saturating_sub(1);
            }
        }
    }
}

/// A probability below 1, of 2^64.
pub(super) fn chance(probability: f64) -> u64 {
    const ALL: f64 = 18_446_744_073_709_551_616.0;
    (probability * ALL) as u64
}

/// How the gain of a channel changes within wavelengths, as waves add up that came by different ways.
///
/// It is Nakagami's m-distribution, as in Liu, Zhou and Giannakis, "Queuing with adaptive modulation and coding over wireless links",
/// IEEE Transactions on Wireless Communications 4(3), 2005, divided into states of the same probability.
pub(super) struct Fading;

impl Fading {
    const STATES: u32 = 8;
    /// Nakagami's m. Stated: with two antennas, and a carrier wider than what fades together, as four that fade by themselves.
    const BRANCHES: i32 = 4;

    pub(super) fn chain(doppler_hertz: f64, seed: Seed) -> Chain {
        let thresholds = (1..Fading::STATES).map(Fading::threshold);
        let edges = thresholds.map(|threshold| {
            // Both states have this share of the time.
            let rate = Fading::crossings(threshold, doppler_hertz) * f64::from(Fading::STATES);
            Edge {
                up: rate,
                down: rate,
            }
        });
        let edges: Vec<Edge> = edges.collect();
        Chain::new(&edges, Fading::STATES as usize / 2, seed)
    }

    /// The mean gain of each state; that of all is 1.
    pub(super) fn gains() -> Vec<f64> {
        let above = |state: u32| match state {
            0 => 1.0,
            Fading::STATES => 0.0,
            state => tail(Fading::BRANCHES + 1, Fading::threshold(state)),
        };
        (0..Fading::STATES)
            .map(|state| f64::from(Fading::STATES) * (above(state) - above(state + 1)))
            .collect()
    }

    /// What the gain, times [`Self::BRANCHES`], is below in so many states.
    pub(super) fn threshold(states: u32) -> f64 {
        let above = 1.0 - f64::from(states) / f64::from(Fading::STATES);
        let (mut low, mut high) = (0.0, 100.0);
        for _ in 0..100 {
            let middle = (low + high) / 2.0;
            if tail(Fading::BRANCHES, middle) > above {
                low = middle;
            } else {
                high = middle;
            }
        }
        low
    }

    /// How often a second the gain falls below a threshold: Yacoub et al., "On higher order statistics of the Nakagami-m distribution",
    /// IEEE Transactions on Vehicular Technology 48(3), 1999.
    fn crossings(threshold: f64, doppler_hertz: f64) -> f64 {
        let factorial: i32 = (1..Fading::BRANCHES).product();
        let power = threshold.powi(Fading::BRANCHES) / threshold.sqrt();
        std::f64::consts::TAU.sqrt() * doppler_hertz * power * (-threshold).exp()
            / f64::from(factorial)
    }
}

/// That the sum of so many exponential variables of mean 1 is greater.
fn tail(count: i32, value: f64) -> f64 {
    let terms = (0..count).scan(1.0, |term, number| {
        let this = *term;
        *term *= value / f64::from(number + 1);
        Some(this)
    });
    (-value).exp() * terms.sum::<f64>()
}

/// How the signal changes within tens of metres, behind houses.
///
/// It is normal in decibels, and what it is after a distance depends on what it was by an exponential: Gudmundson, "Correlation model for
/// shadow fading in mobile radio systems", Electronics Letters 27(23), 1991. Here it goes by steps of two decibels, two
/// deviations at most, which is stated: below, another cell is heard better.
pub(super) struct Shadowing;

impl Shadowing {
    /// 3GPP TR 38.901, table 7.4.1-1: urban macro without line of sight.
    const DEVIATION: f64 = 6.0;
    /// The same, table 7.5-6.
    const METRES: f64 = 50.0;
    const STEP: f64 = 2.0;
    /// On each side of the mean.
    const STEPS: i32 = 6;

    /// It begins at the mean: who stands stays there.
    pub(super) fn chain(metres_per_second: f64, seed: Seed) -> Chain {
        let spread = Shadowing::DEVIATION.powi(2) / Shadowing::METRES / Shadowing::STEP.powi(2);
        let levels = Shadowing::decibels();
        let edges = levels.iter().zip(levels.iter().skip(1)).map(|(from, to)| {
            let exponent = (from.powi(2) - to.powi(2)) / (4.0 * Shadowing::DEVIATION.powi(2));
            let rate = spread * metres_per_second;
            Edge {
                up: rate * exponent.exp(),
                down: rate * (-exponent).exp(),
            }
        });
        let edges: Vec<Edge> = edges.collect();
        Chain::new(&edges, Shadowing::STEPS as usize, seed)
    }

    /// Of each state.
    pub(super) fn decibels() -> Vec<f64> {
        (-Shadowing::STEPS..=Shadowing::STEPS)
            .map(|step| f64::from(step) * Shadowing::STEP)
            .collect()
    }
}
