//! Tables of numbers, and numbers in words.

use maud::{Markup, html};

use super::findings::Findings;
use super::verdict::{Agreement, Compared, prediction};
use crate::text;
use lastbyte_results::Estimate;
use lastbyte_study::{Cell, Parameter, Quantity, Question, varying};

/// Published numbers beside ours.
pub(super) fn published_table(findings: &Findings, rows: &[&Compared]) -> Markup {
    let common = common_words(findings, rows);
    html! {
        @if !rows.is_empty() {
            div.scroll {
                table {
                    thead {
                        tr {
                            th { (common.join(", ")) } th {} th { "published" } th { "ours" }
                            th { "another run, 95 %" } th {}
                        }
                    }
                    @for row in rows { (published_rows(findings, row, &common)) }
                }
            }
            @for cause in causes(rows) { p.caption { (cause) } }
        }
    }
}

/// What the places of all rows have, which is reported once.
fn common_words(findings: &Findings, rows: &[&Compared]) -> Vec<String> {
    let [first, others @ ..] = rows else {
        return Vec::new();
    };
    if others.is_empty() {
        return Vec::new();
    }
    let place = |row: &Compared| quantity::place(findings, &row.published.question);
    let mut common = place(first);
    for row in others {
        let place = place(row);
        common.retain(|word| place.contains(word));
    }
    common
}

/// A row for each percentile.
fn published_rows(findings: &Findings, row: &Compared, common: &[String]) -> Markup {
    let Compared { published, numbers } = row;
    let question = &published.question;
    let unit = quantity::unit(question);
    let mut what = vec![format!(
        "{}: {}",
        published.source,
        quantity::what(question)
    )];
    let place = quantity::place(findings, question).into_iter();
    what.extend(place.filter(|word| !common.contains(word)));
    html! {
        @for (index, number) in numbers.iter().enumerate() {
            @let (class, word) = agreement(number.agreement);
            tr {
                th { @if index == 0 { (what.join(", ")) } }
                th { (number.percentile) }
                td { (quantity::digits(unit, number.published)) }
                td class=(class) {
                    @match number.ours {
                        Some(ours) => (quantity::digits(unit, ours.value)),
                        None => "–",
                    }
                }
                td.interval {
                    @if let Some(ours) = number.ours {
                        (text::interval(&prediction(ours), |end| quantity::digits(unit, end)))
                    }
                }
                td class=(class) { (word) }
            }
        }
    }
}

/// Its class, and its word.
fn agreement(agreement: Agreement) -> (&'static str, &'static str) {
    match agreement {
        Agreement::Agrees => ("agrees", "agrees"),
        Agreement::Differs => ("differs", "differs"),
        Agreement::Open => ("unknown", "can’t tell"),
        Agreement::Unmeasured => ("unknown", "not measured"),
    }
}

/// Why rows differ from what was published, each cause once.
fn causes<'a>(rows: &[&'a Compared]) -> Vec<&'a str> {
    let mut causes: Vec<&str> = Vec::new();
    for Compared { published, numbers } in rows {
        let mut agreements = numbers.iter().map(|number| number.agreement);
        if let Some(cause) = &published.cause
            && agreements.any(|agreement| agreement == Agreement::Differs)
            && !causes.contains(&&**cause)
        {
            causes.push(cause);
        }
    }
    causes
}

/// What a quantity is counted in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Unit {
    Milliseconds,
    Percent,
    Kilobytes,
    Bytes,
    Times,
}

/// Questions and their answers in words.
pub(super) mod quantity {
    use super::super::findings::Answer;
    use super::super::verdict::Verdict;
    use super::{Cell, Estimate, Findings, Parameter, Quantity, Question, Unit, text, varying};
    use crate::thresholds::NOTHING_MS;
    use lastbyte_study::{Bounds, Check};

    pub(in super::super) fn unit(question: &Question) -> Unit {
        match question.quantity {
            Quantity::Time | Quantity::Later { .. } | Quantity::Sooner { .. } => Unit::Milliseconds,
            Quantity::Increase | Quantity::Slowdown { .. } => Unit::Percent,
            Quantity::Authentication => Unit::Kilobytes,
            Quantity::Message(_) => Unit::Bytes,
            Quantity::Ratio { .. } | Quantity::Multiple { .. } => Unit::Times,
        }
    }

    pub(in super::super) fn digits(unit: Unit, number: f64) -> String {
        let number = number + 0.0;
        match unit {
            Unit::Milliseconds if number.abs() >= 1000.0 => format!("{number:.0} ms"),
            Unit::Milliseconds => format!("{number:.1} ms"),
            Unit::Percent => format!("{number:.2} %"),
            Unit::Kilobytes => format!("{number:.1} KB"),
            Unit::Bytes => format!("{number:.0} B"),
            Unit::Times => format!("{number:.2} times"),
        }
    }

    /// As a sentence has it, of two or three digits: `35 ms`, `3.1 %`.
    pub(in super::super) fn sentence_digits(unit: Unit, number: f64) -> String {
        let sign = if number < 0.0 { "\u{2212}" } else { "" };
        let number = number.abs();
        let (digits, unit) = match unit {
            Unit::Milliseconds => (text::digits(number), "ms"),
            Unit::Percent => (text::digits(number), "%"),
            Unit::Kilobytes => (text::digits(number), "KB"),
            Unit::Bytes => (text::grouped(number.round() as usize), "bytes"),
            Unit::Times if number < 9.95 => (format!("{number:.1}"), "times"),
            Unit::Times => (text::digits(number), "times"),
        };
        match digits.as_str() {
            "0" => format!("0\u{a0}{unit}"),
            digits => format!("{sign}{digits}\u{a0}{unit}"),
        }
    }

    /// The same with a decimal, where there are milliseconds or percent.
    pub(in super::super) fn fine_digits(unit: Unit, number: f64) -> String {
        let sign = if number <= -NOTHING_MS {
            "\u{2212}"
        } else {
            ""
        };
        match unit {
            Unit::Milliseconds => format!("{sign}{:.1}\u{a0}ms", number.abs()),
            Unit::Percent => format!("{sign}{:.1}\u{a0}%", number.abs()),
            Unit::Kilobytes | Unit::Bytes | Unit::Times => sentence_digits(unit, number),
        }
    }

    /// What somebody chose, and so is round: `20 %`.
    pub(in super::super) fn bound(unit: Unit, number: f64) -> String {
        let text = digits(unit, number);
        let Some((number, unit)) = text.split_once(' ') else {
            return text;
        };
        if number.contains('.') {
            format!(
                "{} {unit}",
                number.trim_end_matches('0').trim_end_matches('.')
            )
        } else {
            text
        }
    }

    /// `handshake increase of pq`
    pub(in super::super) fn what(question: &Question) -> String {
        let metric = text::metric(question.metric);
        let other = |of: &Option<String>| of.clone().unwrap_or_else(|| "the baseline".to_owned());
        match &question.quantity {
            Quantity::Time => format!("{metric} of {}", question.arm),
            Quantity::Increase => format!("{metric} increase of {}", question.arm),
            Quantity::Later { of } => {
                format!("{metric} of {}, later than {}", question.arm, other(of))
            }
            Quantity::Sooner { of } => {
                format!("{metric} of {}, sooner than {}", question.arm, other(of))
            }
            Quantity::Slowdown { .. } => {
                format!("{metric} slowdown of {} by the network", question.arm)
            }
            Quantity::Authentication => format!("authentication data of {}", question.arm),
            Quantity::Message(message) => format!("{message} of {}", question.arm),
            Quantity::Multiple { of } => {
                format!("largest chain of {} to that of {of}", question.arm)
            }
            Quantity::Ratio { of } => {
                format!("{metric} increase of {} to that of {of}", question.arm)
            }
        }
    }

    /// What all its cells have of what it names: `RTT 35ms`, `loss 1%`.
    pub(in super::super) fn place(findings: &Findings, question: &Question) -> Vec<String> {
        let cells = (findings.study).cells_named(&question.measures, &question.cells);
        let cells: Vec<&Cell> = cells.map(|(_, cell)| cell).collect();
        let differ = varying(&cells);
        let told =
            |parameter: &Parameter| question.cells.names(*parameter) && !differ.contains(parameter);
        let told = Parameter::ALL.into_iter().filter(told);
        (cells.first().into_iter())
            .flat_map(|cell| told.clone().map(|parameter| parameter.describe(cell)))
            .collect()
    }

    pub(in super::super) fn question(findings: &Findings, question: &Question) -> String {
        let what = what(question);
        let place = place(findings, question);
        if place.is_empty() {
            format!("{what} in {}", question.measures.join(" and "))
        } else {
            format!("{what}, {}", place.join(", "))
        }
    }

    /// What must hold.
    pub(in super::super) fn check(findings: &Findings, check: &Check) -> String {
        format!("{}: {}", question(findings, &check.question), bounds(check))
    }

    /// `10 to 20 %`, `at most 5 %`
    pub(in super::super) fn bounds(check: &Check) -> String {
        bounds_of(unit(&check.question), check.within)
    }

    /// The same of any bounds.
    pub(in super::super) fn bounds_of(unit: Unit, Bounds { least, most }: Bounds) -> String {
        match (least, most) {
            (Some(least), Some(most)) => {
                let (least, most) = (bound(unit, least), bound(unit, most));
                let number = least.split_once(' ').map_or(&*least, |(number, _)| number);
                format!("{number} to {most}")
            }
            (Some(least), None) => format!("at least {}", bound(unit, least)),
            (None, Some(most)) => format!("at most {}", bound(unit, most)),
            (None, None) => String::new(),
        }
    }

    /// How far two numbers are apart: `5.35 points` for percentages, which have no percent between them.
    pub(in super::super) fn distance(unit: Unit, number: f64) -> String {
        match unit {
            Unit::Percent => format!("{number:.2} points"),
            _ => digits(unit, number),
        }
    }

    /// A number with its place, as far as the check has several.
    pub(in super::super) fn answer(
        findings: &Findings,
        check: &Check,
        all: &[(Answer, Verdict)],
        answer: &Answer,
    ) -> String {
        let (place, number) = (
            own_place(findings, check, all, answer),
            measured(check, answer),
        );
        format!("{place} {number}")
    }

    /// `200KiB p90`: what tells a number from the others of its check.
    pub(in super::super) fn own_place(
        findings: &Findings,
        check: &Check,
        all: &[(Answer, Verdict)],
        answer: &Answer,
    ) -> String {
        let cells: Vec<&Cell> = (all.iter())
            .filter_map(|(answer, _)| findings.cell(*answer.group.cells.first()?))
            .collect();
        let differ = varying(&cells);
        let cell = answer.group.cells.first();
        let cell = cell.and_then(|place| findings.cell(*place));
        let mut words: Vec<String> = (cell.into_iter())
            .flat_map(|cell| {
                let told = differ
                    .iter()
                    .filter(|parameter| !check.question.pool.contains(parameter));
                told.map(|parameter| parameter.describe(cell))
            })
            .collect();
        words.push(answer.percentile.to_string());
        words.join(" ")
    }

    /// `4.65 % [0.96 %, 9.48 %]`, or why there is no number.
    pub(in super::super) fn measured(check: &Check, answer: &Answer) -> String {
        measured_in(unit(&check.question), answer)
    }

    /// The same in this unit.
    pub(in super::super) fn measured_in(unit: Unit, answer: &Answer) -> String {
        match &answer.number {
            Err(reason) => reason.to_string(),
            Ok(Estimate { value, interval }) => {
                let told = digits(unit, *value);
                let interval = text::interval(interval, |end| digits(unit, end));
                // One that is a point says nothing.
                if interval == format!("[{told}, {told}]") {
                    told
                } else {
                    format!("{told} {interval}")
                }
            }
        }
    }
}
