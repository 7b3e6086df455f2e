//! How jitter is distributed, and the tables that netem draws it from.

use std::fmt;
use std::str::FromStr;
use std::sync::{Arc, LazyLock};

use crate::{Table, UnitError, UnknownName};

/// How jitter is distributed.
///
/// Written by its name. An [`Empirical`](Distribution::Empirical) one has the name of its file,
/// which is for the caller to read.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub enum Distribution {
    /// Even, from `delay - jitter` to just below `delay + jitter`. netem's default.
    #[default]
    Uniform,
    /// Normal, with the jitter as its standard deviation.
    ///
    /// The table holds the quantiles at `(i + 1/2) / 4096`, so its mean is 0 and its ends are
    /// ±3.67 times the jitter. The one that comes with iproute2 has those at `(i + 1/8) / 4096`,
    /// a mean of -0.0008 and ends of -4 and 3.52.
    Normal,
    /// Pareto's, of shape 3: none is early by more than 2/3 of the jitter, and a few are very
    /// late.
    ///
    /// The table is the one that comes with iproute2. It is cut off at four times the jitter,
    /// which leaves a mean of -0.0335 and a standard deviation of 0.820 times the jitter.
    Pareto,
    /// One quarter of the normal quantile and three quarters of Pareto's, which the authors of
    /// NIST Net found near to what they had observed.
    ///
    /// The table is the one that comes with iproute2, with a mean of -0.0253, a standard deviation
    /// of 0.834 and ends of -1.50 and 3.88 times the jitter.
    ParetoNormal,
    /// As it was measured.
    Empirical(Arc<Table>),
}

impl Distribution {
    /// The table that delays are drawn from, for those that have one: quantiles in
    /// 1/8192 of the jitter, as `TCA_NETEM_DELAY_DIST` takes them.
    #[must_use]
    pub fn table(&self) -> Option<&[i16]> {
        match self {
            Distribution::Uniform => None,
            Distribution::Normal => Some(&NORMAL),
            Distribution::Pareto => Some(&PARETO),
            Distribution::ParetoNormal => Some(&PARETO_NORMAL),
            Distribution::Empirical(table) => Some(table.quantiles()),
        }
    }

    fn name(&self) -> &str {
        match self {
            Distribution::Uniform => "uniform",
            Distribution::Normal => "normal",
            Distribution::Pareto => "pareto",
            Distribution::ParetoNormal => "paretonormal",
            Distribution::Empirical(table) => table.name(),
        }
    }
}

impl From<Table> for Distribution {
    fn from(table: Table) -> Distribution {
        Distribution::Empirical(Arc::new(table))
    }
}

impl FromStr for Distribution {
    type Err = UnitError;

    fn from_str(text: &str) -> Result<Distribution, UnitError> {
        let all = [
            Distribution::Uniform,
            Distribution::Normal,
            Distribution::Pareto,
            Distribution::ParetoNormal,
        ];
        match all.iter().find(|one| one.name() == text) {
            Some(one) => Ok(one.clone()),
            None => {
                let names = all.iter().map(Distribution::name);
                Err(UnknownName::new("jitter distribution", text, names).into())
            }
        }
    }
}

impl fmt::Display for Distribution {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// How many quantiles the tables here have. They are on the heap, as a module for browsers would
/// hold all their zeros.
pub(crate) const TABLE_SIZE: usize = 4096;

/// `NETEM_DIST_SCALE`: what one standard deviation is in a table.
pub(crate) const SCALE: i128 = 8192;

static NORMAL: LazyLock<Vec<i16>> = LazyLock::new(|| {
    const HALF: usize = TABLE_SIZE / 2;

    let mut table = vec![0; TABLE_SIZE];
    let (lower, upper) = table.split_at_mut(HALF);
    let mut quantile = 0.0;
    for (i, (below, above)) in lower.iter_mut().rev().zip(upper).enumerate() {
        quantile = normal_quantile(0.5 + (i as f64 + 0.5) / TABLE_SIZE as f64, quantile);
        *above = to_table(quantile);
        *below = -*above;
    }
    table
});

/// `netem/pareto.c` of iproute2: quantiles at `i / 4096`.
static PARETO: LazyLock<Vec<i16>> = LazyLock::new(|| {
    const SHAPE: f64 = 3.0;
    const MEAN: f64 = SHAPE / (SHAPE - 1.0);
    // That it is scaled by this, and not by the square root, is why the table has less deviation.
    const VARIANCE: f64 = MEAN / ((SHAPE - 1.0) * (SHAPE - 2.0));

    let quantile = |i| {
        let exceeding = 1.0 - i as f64 / TABLE_SIZE as f64;
        to_table((exceeding.powf(-1.0 / SHAPE) - MEAN) / VARIANCE)
    };
    (0..TABLE_SIZE).map(quantile).collect()
});

/// `netem/paretonormal.c` of iproute2: of the normal distribution, quantiles at `(i + 1/8) / 4096`.
static PARETO_NORMAL: LazyLock<Vec<i16>> = LazyLock::new(|| {
    // The program finds a quantile as the last multiple of this below it.
    const STEP: f64 = 0.00005;

    let mix = |normal: f64, pareto: &mut i16| {
        // Not cut off at four standard deviations before it is mixed.
        let normal = ((normal / STEP).floor() * STEP * SCALE as f64).round() as i32;
        *pareto = ((normal + 3 * i32::from(*pareto)) / 4) as i16;
    };
    let mut table = PARETO.clone();
    let (lower, upper) = table.split_at_mut(TABLE_SIZE / 2);
    let mut quantile = 0.0;
    for (i, value) in upper.iter_mut().enumerate() {
        quantile = normal_quantile(0.5 + (i as f64 + 0.125) / TABLE_SIZE as f64, quantile);
        mix(quantile, value);
    }
    quantile = 0.0;
    for (i, value) in lower.iter_mut().rev().enumerate() {
        quantile = normal_quantile(0.5 + (i as f64 + 0.875) / TABLE_SIZE as f64, quantile);
        mix(-quantile, value);
    }
    table
});

/// A quantile as a table holds it: no more than four standard deviations.
pub(crate) fn to_table(quantile: f64) -> i16 {
    (quantile * SCALE as f64).round() as i16
}

/// The quantile of the standard normal distribution at `probability`, from one half up, to 1e-12.
///
/// Newton's method on the distribution function, from a quantile `below`: the function is concave
/// here, so that no step goes too far.
fn normal_quantile(probability: f64, below: f64) -> f64 {
    let mut x = below;
    loop {
        let (distribution, density) = normal(x);
        let step = (probability - distribution) / density;
        x += step;
        if step < 1e-9 {
            return x;
        }
    }
}

/// The distribution function and the density of the standard normal distribution at `x`.
///
/// The series is that of Marsaglia, "Evaluating the normal distribution", Journal of Statistical
/// Software 11(4), 2004.
fn normal(x: f64) -> (f64, f64) {
    let density = (-x * x / 2.0).exp() / std::f64::consts::TAU.sqrt();
    let (mut sum, mut term, mut divisor) = (0.0, x, 1.0);
    while sum + term != sum {
        sum += term;
        divisor += 2.0;
        term *= x * x / divisor;
    }
    (0.5 + sum * density, density)
}
