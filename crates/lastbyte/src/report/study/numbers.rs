//! Tables of numbers, and numbers in words.

use super::findings::Findings;
use super::verdict::{Agreement, Compared, prediction};
use crate::report::escape::xml as escape;
use crate::report::text;
use crate::results::Estimate;
use crate::study::{Cell, Figure, Parameter, Quantity, Question, varying};

/// Published numbers beside ours.
pub(super) fn published_table(findings: &Findings, rows: &[&Compared]) -> String {
    if rows.is_empty() {
        return String::new();
    }
    let mut text = String::new();
    let mut causes: Vec<&str> = Vec::new();
    // What all rows have is told once.
    let mut places = rows
        .iter()
        .map(|row| quantity::place(findings, &row.published.question));
    let mut common = places.next().unwrap_or_default();
    if rows.len() > 1 {
        places.for_each(|place| common.retain(|word| place.contains(word)));
    } else {
        common.clear();
    }
    text.push_str(&format!(
        "<div class=\"scroll\"><table>\n<thead><tr><th>{}</th><th></th><th>published</th><th>ours</th>\
         <th>another run, 95 %</th><th></th></tr></thead>\n",
        escape(&common.join(", "))
    ));
    for Compared { published, numbers } in rows {
        let unit = quantity::unit(&published.question);
        let place = quantity::place(findings, &published.question);
        let place: Vec<String> = place
            .into_iter()
            .filter(|word| !common.contains(word))
            .collect();
        let what = format!(
            "{}: {}",
            published.source,
            quantity::what(&published.question)
        );
        let what = match place.is_empty() {
            true => what,
            false => format!("{what}, {}", place.join(", ")),
        };
        let mut differs = false;
        for (index, one) in numbers.iter().enumerate() {
            let what = if index == 0 { &*what } else { "" };
            let (class, word) = match one.agreement {
                Agreement::Agrees => ("agrees", "agrees"),
                Agreement::Differs => ("differs", "differs"),
                Agreement::Unmeasured => ("unknown", "not measured"),
            };
            differs |= one.agreement == Agreement::Differs;
            let ours = one
                .ours
                .map_or("–".to_owned(), |ours| quantity::digits(unit, ours.value));
            let range = one.ours.map_or(String::new(), |ours| {
                text::interval(&prediction(ours), |end| quantity::digits(unit, end))
            });
            text.push_str(&format!(
                "<tr><th>{}</th><th>{}</th><td>{}</td><td class=\"{class}\">{ours}</td><td class=\"interval\">{range}</td>\
                 <td class=\"{class}\">{word}</td></tr>\n",
                escape(what),
                one.percentile,
                quantity::digits(unit, one.published),
            ));
        }
        if let Some(cause) = published.cause.as_deref()
            && differs
            && !causes.contains(&cause)
        {
            causes.push(cause);
        }
    }
    text.push_str("</table></div>\n");
    for cause in causes {
        text.push_str(&format!("<p class=\"caption\">{}</p>\n", escape(cause)));
    }
    text
}

/// The cells of a figure with a row for each arm.
pub(super) fn table(findings: &Findings, figure: &Figure, places: &[(usize, usize)]) -> String {
    let cells: Vec<&Cell> = places
        .iter()
        .filter_map(|place| findings.cell(*place))
        .collect();
    let differ = varying(&cells);
    let percentiles = findings.percentiles_of(figure);
    let mut heads: Vec<String> = differ
        .iter()
        .map(|known| known.title().to_owned())
        .collect();
    heads.push("arm".to_owned());
    heads.extend(
        percentiles
            .iter()
            .map(|percentile| format!("{percentile}, ms")),
    );
    heads.extend(
        percentiles
            .iter()
            .map(|percentile| format!("{percentile}, %")),
    );
    let heads: String = heads
        .iter()
        .map(|head| format!("<th>{}</th>", escape(head)))
        .collect();
    let mut text = format!("<div class=\"scroll\"><table>\n<thead><tr>{heads}</tr></thead>\n");
    for place in places {
        let Some((cell, summary)) = findings.cell(*place).zip(findings.cell_summary(*place)) else {
            continue;
        };
        for arm in &summary.arms {
            if !figure.arms.is_empty() && !figure.arms.contains(&arm.label) {
                continue;
            }
            let metric = arm.metric(figure.metric);
            let values = differ.iter().map(|known| known.of(cell));
            let times = percentiles.iter().map(|percentile| {
                let time = metric.percentiles.get(percentile);
                time.map_or("–".to_owned(), text::time)
            });
            let increases = percentiles.iter().map(|percentile| {
                text::increase(metric, *percentile, findings.critical()).unwrap_or_default()
            });
            let columns = values
                .chain([arm.label.clone()])
                .chain(times)
                .chain(increases);
            let columns: String = columns
                .map(|column| format!("<td>{}</td>", escape(&column)))
                .collect();
            text.push_str(&format!("<tr>{columns}</tr>\n"));
        }
    }
    text + "</table></div>\n"
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
    use crate::study::{Bounds, Check};

    pub(in super::super) fn unit(question: &Question) -> Unit {
        match question.quantity {
            Quantity::Time => Unit::Milliseconds,
            Quantity::Increase | Quantity::Slowdown { .. } => Unit::Percent,
            Quantity::Authentication => Unit::Kilobytes,
            Quantity::Message(_) => Unit::Bytes,
            Quantity::Ratio { .. } => Unit::Times,
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

    /// `handshake increase of pq`
    pub(in super::super) fn what(question: &Question) -> String {
        let metric = text::metric(question.metric);
        match &question.quantity {
            Quantity::Time => format!("{metric} of {}", question.arm),
            Quantity::Increase => format!("{metric} increase of {}", question.arm),
            Quantity::Slowdown { .. } => {
                format!("{metric} slowdown of {} by the network", question.arm)
            }
            Quantity::Authentication => format!("authentication data of {}", question.arm),
            Quantity::Message(message) => format!("{message} of {}", question.arm),
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
            .flat_map(|cell| told.clone().map(|parameter| parameter.told(cell)))
            .collect()
    }

    fn question(findings: &Findings, question: &Question) -> String {
        let what = what(question);
        let place = place(findings, question);
        match place.is_empty() {
            true => format!("{what} in {}", question.measures.join(" and ")),
            false => format!("{what}, {}", place.join(", ")),
        }
    }

    /// What must hold.
    pub(in super::super) fn check(findings: &Findings, check: &Check) -> String {
        let unit = unit(&check.question);
        let Bounds { least, most } = check.within;
        let bounds = match (least, most) {
            (Some(least), Some(most)) => {
                format!("{} to {}", digits(unit, least), digits(unit, most))
            }
            (Some(least), None) => format!("at least {}", digits(unit, least)),
            (None, Some(most)) => format!("at most {}", digits(unit, most)),
            (None, None) => String::new(),
        };
        format!("{}: {bounds}", question(findings, &check.question))
    }

    /// A number with its place, as far as the check has several.
    pub(in super::super) fn answer(
        findings: &Findings,
        check: &Check,
        all: &[(Answer, Verdict)],
        answer: &Answer,
    ) -> String {
        let unit = unit(&check.question);
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
                told.map(|parameter| parameter.told(cell))
            })
            .collect();
        words.push(answer.percentile.to_string());
        let number = match &answer.number {
            Err(reason) => reason.clone(),
            Ok(Estimate { value, interval }) => {
                let interval = text::interval(interval, |end| digits(unit, end));
                format!("{} {interval}", digits(unit, *value))
            }
        };
        format!("{} {number}", words.join(" "))
    }
}
