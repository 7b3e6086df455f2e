//! Round numbers for axes.

/// The largest of 1, 2 and 5 times a power of ten that is no longer than this.
pub(super) fn round_step(longest: f64) -> f64 {
    let unit = 10_f64.powf(longest.log10().floor());
    let digit = [5.0, 2.0].into_iter().find(|digit| digit * unit <= longest);
    digit.unwrap_or(1.0) * unit
}

/// Round numbers from `low` to `high`, three or more, with their texts.
pub(super) fn linear(low: f64, high: f64) -> Vec<(f64, String)> {
    let step = round_step((high - low) / 3.0);
    let places = -step.log10().floor() as i32;
    let first = (low / step - 1e-6).ceil() as i64;
    let last = (high / step + 1e-6).floor() as i64;
    (first..=last)
        .map(|count| count as f64 * step)
        .map(|value| (value, decimals(value + 0.0, places)))
        .collect()
}

/// The same for an axis of logarithms, both ends of which are above zero.
pub(super) fn logarithmic(low: f64, high: f64) -> Vec<(f64, String)> {
    let decades = low.log10().floor() as i32..=high.log10().ceil() as i32;
    for leading in [&[1.0][..], &[1.0, 3.0], &[1.0, 2.0, 5.0]] {
        let values = decades.clone().flat_map(|decade| {
            let unit = 10_f64.powi(decade);
            leading.iter().map(move |digit| (digit * unit, decade))
        });
        let ticks: Vec<_> = values
            .filter(|(value, _)| (low..=high).contains(value))
            .map(|(value, decade)| (value, decimals(value, -decade)))
            .collect();
        if ticks.len() >= 3 {
            return ticks;
        }
    }
    // Less than a decade is nearly linear.
    linear(low, high)
}

/// A number with so many digits after the point; none, if that is below zero.
fn decimals(number: f64, places: i32) -> String {
    let places = usize::try_from(places).unwrap_or(0);
    format!("{number:.places$}")
}
