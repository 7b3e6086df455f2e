//! Many questions at once.
//!
//! Of a hundred comparisons of equals, five have an interval that does not hold zero. What is called a
//! difference is therefore chosen among all that are reported together, so that of those that are called
//! one, 5 % are expected to be none (Benjamini and Hochberg 1995).

/// The share of differences that are expected to be none.
pub const FALSE_DISCOVERIES: f64 = 0.05;

/// The largest of `p_values` that still counts as a difference; zero if none does.
pub fn critical(mut p_values: Vec<f64>) -> f64 {
    p_values.sort_unstable_by(f64::total_cmp);
    let all = p_values.len() as f64;
    let mut ranked = p_values.iter().enumerate().rev();
    let last = ranked.find(|(place, p)| **p <= (place + 1) as f64 / all * FALSE_DISCOVERIES);
    last.map_or(0.0, |(_, p)| *p)
}

#[cfg(test)]
mod tests {
    use super::critical;

    /// The fifteen p-values of Benjamini and Hochberg (1995), section 3.2, of which four count.
    #[test]
    fn the_example_of_the_authors() {
        let p_values = [
            0.0001, 0.0004, 0.0019, 0.0095, 0.0201, 0.0278, 0.0298, 0.0344, 0.0459, 0.3240, 0.4262,
            0.5719, 0.6528, 0.7590, 1.0,
        ];
        assert_eq!(critical(p_values.to_vec()), 0.0095);
    }

    #[test]
    fn one_question_is_asked_as_ever() {
        assert_eq!(critical(vec![0.05]), 0.05);
        assert_eq!(critical(vec![0.051]), 0.0);
        assert_eq!(critical(Vec::new()), 0.0);
    }
}
