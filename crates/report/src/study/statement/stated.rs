//! What the study itself states, with the numbers of the results, or which of them do not bear it out.

use super::{Number, Part, Source, Standing, Statement};
use crate::study::findings::{Answer, Findings};
use crate::study::numbers::{Unit, quantity};
use crate::study::verdict::{Verdict, within};
use lastbyte_results::{Interval, Percentile, group_by};
use lastbyte_study::{Bearing, Bounds, Headline, Piece, Place};

/// A number whose interval is narrower than that, and which is smaller than that, has a decimal: `29.8 ms [29.4, 30.1]`.
const FINE: f64 = 5.0;
const FINE_BELOW: f64 = 1000.0;

/// What stands in a quoted sentence where a number would stand.
const NOTHING: &str = "…";

pub(super) fn statement(source: &Source<'_>) -> Option<Statement> {
    let findings = source.findings;
    let headline = findings.study.answer.as_ref()?;
    let filled: Vec<(&Piece, Option<Filled<'_>>)> = (headline.pieces.iter())
        .map(|piece| match piece {
            Piece::Words(_) => (piece, None),
            Piece::Place(place) => (piece, Some(Filled::new(findings, place))),
        })
        .collect();
    let mut failures: Vec<String> = Vec::new();
    for failure in filled
        .iter()
        .filter_map(|(_, filled)| filled.as_ref()?.failure(findings))
    {
        if !failures.contains(&failure) {
            failures.push(failure);
        }
    }
    if !failures.is_empty() {
        return Some(Statement {
            standing: Standing::NotBorneOut,
            parts: vec![Part::Words(format!(
                "These results do not bear out that “{}”: {}.",
                quoted(headline),
                failures.join("; ")
            ))],
        });
    }
    let parts = filled
        .into_iter()
        .map(|(piece, filled)| match (piece, filled) {
            (_, Some(filled)) => Part::Number(filled.number()),
            (Piece::Words(words), None) => Part::Words(words.clone()),
            (Piece::Place(_), None) => Part::Words(NOTHING.to_owned()),
        });
    Some(Statement {
        standing: Standing::BorneOut,
        parts: parts.collect(),
    })
}

/// The sentence without its numbers.
fn quoted(headline: &Headline) -> String {
    let pieces = headline.pieces.iter().map(|piece| match piece {
        Piece::Words(words) => words.as_str(),
        Piece::Place(_) => NOTHING,
    });
    pieces.collect::<String>().trim_end_matches('.').to_owned()
}

/// A place with what the results have for it.
struct Filled<'a> {
    place: &'a Place,
    unit: Unit,
    answers: Vec<Answer>,
}

impl<'a> Filled<'a> {
    fn new(findings: &Findings, place: &'a Place) -> Filled<'a> {
        Filled {
            place,
            unit: quantity::unit(&place.question),
            answers: findings.answers(&place.question),
        }
    }

    /// Why it does not bear the sentence out, if it does not: the number that is furthest from that.
    fn failure(&self, findings: &Findings) -> Option<String> {
        let question = &self.place.question;
        let failing = |answer: &&Answer| !self.is_borne_out(findings, answer);
        // What is wrong says more than what is not known.
        let worst = self
            .answers
            .iter()
            .filter(failing)
            .min_by_key(|answer| match &answer.number {
                Ok(estimate) if !estimate.interval.is_unknown() => 0,
                _ => 1,
            });
        let what = quantity::question(findings, question);
        let Some(worst) = worst else {
            return self
                .answers
                .is_empty()
                .then(|| format!("{what}, was not measured"));
        };
        let percentile = worst.percentile;
        let is_nothing = |number: f64| {
            let nothing = quantity::sentence_digits(self.unit, 0.0);
            quantity::sentence_digits(self.unit, number) == nothing
        };
        let reason = match (&worst.number, self.place.bearing) {
            (Err(reason), _) => {
                return Some(format!("{what}, is not known at {percentile}: {reason}"));
            }
            (Ok(estimate), _) if estimate.interval.is_unknown() => {
                "connections are too few to say".to_owned()
            }
            (Ok(estimate), Bearing::Shown) if estimate.interval.holds_zero() => {
                "its interval holds zero".to_owned()
            }
            (Ok(estimate), Bearing::Shown) if is_nothing(estimate.value) => {
                "that is no difference".to_owned()
            }
            (Ok(estimate), Bearing::Shown) if estimate.value < 0.0 => {
                "that is the other way round".to_owned()
            }
            (Ok(_), Bearing::Shown) => "it does not stand out among all that is told".to_owned(),
            (Ok(_), Bearing::Within(bounds)) => {
                format!("that is not {}", quantity::bounds_of(self.unit, bounds))
            }
            (Ok(_), Bearing::Any) => String::new(),
        };
        let measured = quantity::measured_in(self.unit, worst);
        Some(format!(
            "{what}, is {measured} at {percentile}, and {reason}"
        ))
    }

    fn is_borne_out(&self, findings: &Findings, answer: &Answer) -> bool {
        match (&answer.number, self.place.bearing) {
            (Err(_), _) => false,
            (Ok(_), Bearing::Any) => true,
            (Ok(_), Bearing::Shown) => findings.is_shown(&self.place.question, answer),
            (Ok(estimate), Bearing::Within(bounds)) => within(estimate, bounds) == Verdict::Holds,
        }
    }

    /// `35.1 ms`, or `35.1 to 247 ms` of several cells; further percentiles stand behind the first one.
    fn number(&self) -> Number {
        let mut percentiles = group_by(&self.answers, |answer| answer.percentile).into_iter();
        let first = percentiles.next().map(|(_, answers)| self.span(&answers));
        let (told, interval) = first.unwrap_or_default();
        let mut others = String::new();
        for (percentile, answers) in percentiles {
            let also = self.span(&answers);
            if also != (told.clone(), interval.clone()) {
                others += &further(percentile, &also);
            }
        }
        let (told, interval) = match (interval, &*others) {
            (interval, "") => (told, interval),
            (Some(interval), others) => (format!("{told} {interval}{others}"), None),
            (None, others) => (format!("{told}{others}"), None),
        };
        Number {
            name: self.place.name.clone(),
            told,
            interval,
        }
    }

    /// What is told of numbers of one percentile, and the interval that holds theirs.
    fn span(&self, answers: &[&Answer]) -> (String, Option<String>) {
        let known = || {
            answers
                .iter()
                .filter_map(|answer| answer.number.as_ref().ok())
        };
        let least = |of: &dyn Fn(&Interval<f64>) -> Option<f64>| {
            known()
                .map(|one| of(&one.interval).unwrap_or(f64::NEG_INFINITY))
                .fold(f64::INFINITY, f64::min)
        };
        let low = least(&|interval| interval.low);
        let high = 0.0 - least(&|interval| Some(0.0 - interval.high?));
        // Where whole numbers tell the ends apart, but hardly, a decimal does it better.
        let [coarse_low, coarse_high] =
            [low, high].map(|end| quantity::sentence_digits(self.unit, end));
        let is_fine = coarse_low != coarse_high && high - low < FINE && high < FINE_BELOW;
        let digits = |number: f64| {
            if is_fine {
                quantity::fine_digits(self.unit, number)
            } else {
                quantity::sentence_digits(self.unit, number)
            }
        };
        // What is known of a number with one bound is the end that faces it.
        match self.place.bearing {
            Bearing::Within(Bounds {
                least: None,
                most: Some(_),
            }) => return (digits(upwards(high)), None),
            Bearing::Within(Bounds {
                least: Some(_),
                most: None,
            }) => return (digits(low), None),
            Bearing::Any | Bearing::Shown | Bearing::Within(_) => {}
        }
        let values = || known().map(|one| one.value);
        let ends = [
            values().fold(f64::INFINITY, f64::min),
            values().fold(f64::NEG_INFINITY, f64::max),
        ];
        let bare = |number: f64| {
            let text = digits(number);
            text.split_once('\u{a0}')
                .map_or(text.clone(), |(number, _)| number.to_owned())
        };
        let [from, to] = ends.map(digits);
        let told = if from == to {
            to.clone()
        } else {
            format!("{} to {to}", bare(ends[0]))
        };
        let is_point = [digits(low), digits(high)] == [from, to];
        (
            told,
            (!is_point).then(|| format!("[{}, {}]", bare(low), bare(high))),
        )
    }
}

/// At most so much, where less than what is written is no zero.
fn upwards(most: f64) -> f64 {
    const LEAST_WRITTEN: f64 = 0.1;
    if most > 0.0 {
        most.max(LEAST_WRITTEN)
    } else {
        most
    }
}

/// ` (p90: 40 ms [38, 41])`
fn further(percentile: Percentile, (told, interval): &(String, Option<String>)) -> String {
    match interval {
        Some(interval) => format!(" ({percentile}: {told} {interval})"),
        None => format!(" ({percentile}: {told})"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bound_is_no_zero_where_something_was_measured() {
        assert_eq!(upwards(0.02).to_string(), "0.1");
        assert_eq!(
            [upwards(0.0), upwards(-1.0), upwards(3.0)],
            [0.0, -1.0, 3.0]
        );
    }
}
