//! The number that decides a claim, in words and drawn.

use super::findings::{Answer, Findings};
use super::numbers::quantity;
use super::verdict::{CheckedClaim, Verdict};
use crate::chart::text_width;
use crate::svg::Svg;
use lastbyte_results::{Estimate, Interval};
use lastbyte_study::Check;

/// The number of a claim that is furthest out, or nearest to being so.
pub(super) struct Deciding<'a> {
    check: &'a Check,
    numbers: &'a [(Answer, Verdict)],
    answer: &'a Answer,
    verdict: Verdict,
    estimate: Estimate<f64>,
}

impl CheckedClaim<'_> {
    /// `None` if none of its numbers was measured.
    pub(super) fn deciding(&self) -> Option<Deciding<'_>> {
        let numbers = self.checks.iter().flat_map(|(check, numbers)| {
            let of_check = numbers.iter();
            of_check.map(move |(answer, verdict)| (*check, numbers, answer, *verdict))
        });
        let known = numbers.filter_map(|(check, numbers, answer, verdict)| {
            Some(Deciding {
                check,
                numbers,
                answer,
                verdict,
                estimate: *answer.number.as_ref().ok()?,
            })
        });
        let known = known.filter(|one| one.verdict == self.verdict);
        known.max_by(|one, other| one.out().total_cmp(&other.out()))
    }
}

impl Deciding<'_> {
    /// How far the number is beyond its bounds, as a share of them; negative within them.
    fn out(&self) -> f64 {
        let value = self.estimate.value;
        let share = |bound: f64| bound.abs().max(value.abs()).max(1e-9);
        let within = self.check.within;
        let below = within.least.map(|least| (least - value) / share(least));
        let above = within.most.map(|most| (value - most) / share(most));
        let sides = below.into_iter().chain(above);
        sides.fold(f64::NEG_INFINITY, f64::max)
    }

    /// `4.65 % [0.96 %, 9.48 %]: 5.35 points less than claimed`
    pub(super) fn words(&self) -> String {
        let measured = quantity::measured(self.check, self.answer);
        let unit = quantity::unit(&self.check.question);
        let value = self.estimate.value;
        let by = |distance| quantity::distance(unit, distance);
        match (self.check.within.least, self.check.within.most) {
            (_, Some(most)) if value > most => {
                format!("{measured}: {} more than claimed", by(value - most))
            }
            (Some(least), _) if value < least => {
                format!("{measured}: {} less than claimed", by(least - value))
            }
            _ => measured,
        }
    }

    /// `p90; last byte increase of pq, loss 3%`
    pub(super) fn of_what(&self, findings: &Findings) -> String {
        let place = quantity::own_place(findings, self.check, self.numbers, self.answer);
        let question = quantity::question(findings, &self.check.question);
        format!("{place}; {question}")
    }

    /// What was claimed as a box, what was measured as a disc with its interval, both with their numbers, and zero.
    pub(super) fn bar(&self) -> String {
        const WIDTH: f64 = 296.0;
        const HEIGHT: f64 = 54.0;
        const MIDDLE: f64 = 27.0;
        const BELOW: f64 = HEIGHT - 4.0;
        let Estimate { value, interval } = self.estimate;
        let within = self.check.within;
        let Interval { low, high } = interval;
        let all = [Some(value), low, high, within.least, within.most, Some(0.0)];
        let all = || all.into_iter().flatten();
        let (least, most) = (
            all().fold(f64::INFINITY, f64::min),
            all().fold(f64::NEG_INFINITY, f64::max),
        );
        let span = (most - least).max(1e-9);
        let (least, most) = (least - 0.06 * span, most + 0.06 * span);
        let place = |number: f64| 4.0 + (WIDTH - 8.0) * (number - least) / (most - least);
        let mut svg = Svg::new(WIDTH, HEIGHT, self.verdict.word());
        let from = within.least.map_or(4.0, place);
        let to = within.most.map_or(WIDTH - 4.0, place);
        svg.line(
            "zero",
            [place(0.0), MIDDLE - 9.0],
            [place(0.0), MIDDLE + 9.0],
        );
        svg.rect(
            "claimed",
            [from, MIDDLE - 7.0],
            [(to - from).max(2.0), 14.0],
        );
        if let (Some(low), Some(high)) = (low, high) {
            svg.line(
                "interval",
                [place(low), MIDDLE],
                [place(high).max(place(low) + 1.0), MIDDLE],
            );
        }
        svg.ring(
            &format!("disc {}", self.verdict.class()),
            [place(value), MIDDLE],
            4.5,
        );
        let unit = quantity::unit(&self.check.question);
        let centred = |text: &str, at: f64| {
            let width = text_width(text);
            (at - width / 2.0).clamp(0.0, (WIDTH - width).max(0.0))
        };
        let measured = quantity::digits(unit, value);
        svg.text("", centred(&measured, place(value)), 13.0, &measured);
        let claimed = format!("claimed {}", quantity::bounds(self.check));
        let at = centred(&claimed, (from + to) / 2.0);
        svg.text("mut", at, BELOW, &claimed);
        let zero = centred("0", place(0.0));
        if zero + 12.0 < at || zero > at + text_width(&claimed) + 6.0 {
            svg.text("mut", zero, BELOW, "0");
        }
        svg.finish()
    }
}
