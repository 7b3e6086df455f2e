//! Round numbers for axes.

/// The largest of 1, 2 and 5 times a power of ten that is no longer than this.
pub(super) fn round_step(longest: f64) -> f64 {
    let unit = 10_f64.powf(longest.log10().floor());
    let digit = [5.0, 2.0].into_iter().find(|digit| digit * unit <= longest);
    digit.unwrap_or(1.0) * unit
}

/// A number with so many digits after the point; none, if that is below zero.
pub(super) fn decimals(number: f64, places: i32) -> String {
    let places = usize::try_from(places).unwrap_or(0);
    format!("{number:.places$}")
}
