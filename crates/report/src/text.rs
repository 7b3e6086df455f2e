//! The pieces of text that reports share.

use std::collections::BTreeSet;
use std::time::Duration;

use lastbyte_link::Bytes;

pub(crate) use lastbyte_results::number::interval;
use lastbyte_results::number::{millisecond_digits, milliseconds, percent_digits};
use lastbyte_results::{
    ArmSummary, CellSummary, Contents, Estimate, Interval, Look, Measured, Metric, MetricSummary,
    Percent, Percentile, Since, Summary,
};
use lastbyte_study::{Buffers, Connections, Device, Until, Work};

/// What stands before an increase or a change that may be none.
pub(super) const UNCERTAIN: char = '~';

/// The metrics worth telling of a cell, the most telling first. Without data, the last byte is
/// the handshake.
pub(super) fn metrics(cell: &CellSummary) -> &'static [Metric] {
    if cell.cell.page.is_some() {
        return &[
            Metric::Load,
            Metric::Lcp,
            Metric::Fcp,
            Metric::SpeedIndex,
            Metric::Ttfb,
            Metric::Handshake,
        ];
    }
    match cell.cell.work() {
        Work { requests: 0, .. } => &[Metric::Handshake],
        Work { data: Bytes(0), .. } => &[Metric::Ttlb, Metric::Handshake],
        _ => &[Metric::Ttlb, Metric::Handshake, Metric::Ttfb],
    }
}

pub(super) fn metric(metric: Metric) -> &'static str {
    match metric {
        Metric::Connect => "connect",
        Metric::Handshake => "handshake",
        Metric::Ttfb => "first byte",
        Metric::Ttlb => "last byte",
        Metric::TlsHandshake => "TLS handshake",
        Metric::DnsRecord => "DNS record",
        Metric::Fcp => "first contentful paint",
        Metric::Lcp => "largest contentful paint",
        Metric::Load => "load",
        Metric::SpeedIndex => "Speed Index",
    }
}

/// `70.4 ms`; infinitely late is `never`.
pub(super) fn time(time: &Measured<Duration>) -> String {
    time.map_or("never".into(), |time| milliseconds(time.value))
}

/// The increase of a percentile: `+1.9 % [1.7, 2.1]`, or `~+0.1 % [-0.2, 0.3]` where it was not shown to
/// be one. `critical` is that of all that are reported together.
pub(super) fn increase(
    metric: &MetricSummary,
    percentile: Percentile,
    critical: f64,
) -> Option<String> {
    let increase = metric.increases.get(&percentile)?;
    let shown = metric.difference(percentile, critical);
    Some(percent(increase, shown))
}

/// The change of a percentile since results were saved, in the same words.
pub(super) fn change(
    metric: &MetricSummary,
    percentile: Percentile,
    critical: f64,
) -> Option<String> {
    let change = metric.changes.get(&percentile)?;
    Some(percent(change, metric.change(percentile, critical)))
}

fn percent(measured: &Measured<Percent>, shown: Option<Estimate<Percent>>) -> String {
    let Ok(estimate) = measured else {
        return "-".into();
    };
    let mut text = String::new();
    if shown.is_none() {
        text.push(UNCERTAIN);
    }
    if estimate.value > Percent(0.0) {
        text.push('+');
    }
    text.push_str(&format!("{} %", percent_digits(estimate.value)));
    if let Some(interval) = uncertainty(estimate, percent_digits) {
        text.push_str(&format!(" {interval}"));
    }
    text
}

/// The interval of a time, if it is one.
pub(super) fn spread(time: &Estimate<Duration>) -> Option<String> {
    uncertainty(time, millisecond_digits)
}

/// An interval: nothing where it is no wider than what is written of the number.
fn uncertainty<T: Copy>(estimate: &Estimate<T>, digits: fn(T) -> String) -> Option<String> {
    let Interval { low, high } = estimate.interval;
    let number = Some(digits(estimate.value));
    let is_point = low.map(digits) == number && high.map(digits) == number;
    (!is_point).then(|| interval(&estimate.interval, digits))
}

/// What the sign of uncertainty means, if it was used in what is `shown`.
pub(super) fn legend(summary: &Summary, shown: &str) -> Option<String> {
    let told: usize = (summary.cells.iter())
        .flat_map(|cell| {
            let arms = cell.arms.iter();
            arms.flat_map(|arm| metrics(cell).iter().map(|metric| arm.metric(*metric)))
        })
        .map(|metric| metric.increases.len() + metric.changes.len())
        .sum();
    let is_used = shown.contains(UNCERTAIN) || has_uncertain_changes(summary);
    let level = level(summary.level().percent());
    let legend = format!("{UNCERTAIN} no difference was shown: its {level} interval holds zero");
    match (is_used, told) {
        (false, _) => None,
        (true, 1) => Some(legend),
        (true, _) => Some(format!(
            "{legend}, or it does not stand out among all {told} percentages that there are"
        )),
    }
}

fn has_uncertain_changes(summary: &Summary) -> bool {
    let is_none = |metric: &MetricSummary| {
        let mut changes = metric.changes.keys();
        changes.any(|of| {
            change(metric, *of, summary.critical_change)
                .is_some_and(|text| text.starts_with(UNCERTAIN))
        })
    };
    let mut cells = summary.cells.iter();
    cells.any(|cell| {
        let mut metrics = metrics(cell).iter();
        metrics.any(|metric| cell.arms.iter().any(|arm| is_none(arm.metric(*metric))))
    })
}

/// What was measured until it was precise enough, and what that makes of intervals.
pub(super) fn precision(summary: &Summary) -> Option<String> {
    let connections = &summary.experiment.connections;
    let Until {
        precision,
        least,
        most,
    } = match connections {
        Connections::Until(until) => until,
        Connections::UpTo(most) => return repeating(summary, *most),
        Connections::Fixed(_) => return None,
    };
    let looks = connections.looks().len();
    let level = level(summary.level().percent());
    Some(format!(
        "Measured until {precision}, with {least} to {most} connections. Intervals are {level} ones, so that \
         those of all {looks} looks hold together with 95 %."
    ))
}

/// How few connections sufficed where they repeat each other, if there were such cells.
fn repeating(summary: &Summary, most: u32) -> Option<String> {
    let repeats = |cell: &&CellSummary| cell.look == Look::Repeating;
    let place = if summary.cells.iter().all(|cell| repeats(&cell)) {
        ", as nothing is by chance"
    } else {
        " in cells in which nothing is by chance"
    };
    let cells = summary.cells.iter().filter(repeats);
    let connections = cells.flat_map(|cell| cell.arms.iter().map(|arm| arm.connections));
    let fewer: BTreeSet<u32> = connections
        .filter(|connections| *connections < most)
        .collect();
    let fewer: Vec<String> = fewer.iter().map(u32::to_string).collect();
    (!fewer.is_empty()).then(|| {
        format!(
            "Exact after {} connections{place}: {most} would have the same percentiles, to the microsecond.",
            fewer.join(" or ")
        )
    })
}

/// `95 %`, `99.29 %`
fn level(Percent(level): Percent) -> String {
    let level = format!("{level:.2}");
    format!("{} %", level.trim_end_matches('0').trim_end_matches('.'))
}

/// What changes are since, and of what.
pub(crate) fn since(summary: &Summary, since: &Since) -> String {
    match summary.contents() {
        Some(Contents::Shares) => format!("since {since}, on the network"),
        _ => format!("since {since}"),
    }
}

/// What is said of times in which there is no computing.
pub(super) const NETWORK_ALONE: &str = "These times are the network's alone: computing took none.";

/// What the times have in them, if anything was measured.
pub(crate) fn contents(summary: &Summary) -> Option<String> {
    let times = match summary.contents()? {
        Contents::Profile => return Some(profile(summary)),
        Contents::Network if summary.experiment.has_foreign_servers() => NETWORK_ALONE,
        Contents::Network => {
            "These times are the network's alone: computing took none. What this machine computes is told, too, \
             unless cpu is none."
        }
        Contents::Shares => {
            "These times are sums: the network's, which are the same on every machine, and what computing takes on this \
             one, measured for itself."
        }
        Contents::Calibrated => {
            "These times have within them what computing takes on this machine, as it was measured before."
        }
        Contents::RealTime => {
            "These times were measured in real time, with all that this machine computed meanwhile."
        }
    };
    let text = [Some(times.to_owned()), page_cpu(summary)].into_iter();
    Some(text.flatten().collect::<Vec<_>>().join(" "))
}

/// What times have in them where programs that people run compute by profiles.
fn profile(summary: &Summary) -> String {
    let samples = summary.cells.iter().flat_map(|cell| &cell.arms);
    let device = samples.filter_map(|sample| sample.engine.computing).next();
    let device = device.map_or(Device::Laptop, |profile| profile.device);
    if summary.experiment.has_pages() {
        format!(
            "These times have in them what browser and server compute, as on a {device}, the same on every machine; what a \
             site's own scripts compute is in none of them."
        )
    } else {
        "These times have in them what servers that people run compute, by a profile that is the same on every \
                  machine; Lastbyte's own ends compute in no time."
            .to_owned()
    }
}

/// What of pages' times was computed, where that was seen.
fn page_cpu(summary: &Summary) -> Option<String> {
    let span = |of: fn(&ArmSummary) -> Option<Duration>| {
        let samples = summary.cells.iter().flat_map(|cell| &cell.arms);
        let computed = samples.filter_map(of);
        let (least, most) = (computed.clone().min()?, computed.max()?);
        let [least, most] = [least, most].map(milliseconds);
        Some(if least == most {
            least
        } else {
            format!("{least} to {most}")
        })
    };
    let ttfb = span(|sample| sample.ttfb_computing).map(|span| {
        format!("{span} of the time to first byte were browser's and server's, not the network's")
    });
    let load = span(|sample| sample.load_cpu)
        .map(|span| format!("by the load event, the page's main thread had computed for {span}"));
    let programs = span(|sample| sample.programs_cpu).map(|span| {
        format!("all processes of browser and server, which run side by side, for {span} together")
    });
    let told: Vec<String> = [ttfb, load, programs].into_iter().flatten().collect();
    (!told.is_empty()).then(|| format!("At each sample's median, {}.", told.join("; ")))
}

/// How the engine fared over all samples, if anything was measured.
pub(super) fn engine(summary: &Summary) -> Option<String> {
    let samples = summary.cells.iter().flat_map(|cell| &cell.arms);
    let engines = || samples.clone().map(|sample| &sample.engine);
    let least = engines().map(|engine| engine.concurrency).min()?;
    let most = engines().map(|engine| engine.concurrency).max()?;
    let late = engines().map(|engine| engine.link_lateness_p99).max()?;
    let lowered: u32 = engines().map(|engine| engine.lowered).sum();
    let span = match (least, most) {
        (1, 1) => "One connection at a time".to_owned(),
        _ if least == most => format!("{most} connections at once"),
        _ => format!("{least} to {most} connections at once"),
    };
    let mut text = if late.is_zero() && most > 1 {
        format!(
            "{span} over one link, in virtual time, in which no packet is late: what meets one of them meets the others, \
             and intervals count each as if it did not"
        )
    } else if late.is_zero() {
        format!("{span}, in virtual time, in which no packet is late")
    } else {
        format!(
            "{span}; in each sample, 99 of 100 packets were at most {} late",
            milliseconds(late)
        )
    };
    match lowered {
        0 => {}
        1 => text.push_str("; 1 block was disturbed and measured again with fewer at once"),
        _ => text.push_str(&format!(
            "; {lowered} blocks were disturbed and measured again with fewer at once"
        )),
    }
    text.push('.');
    Some(text)
}

/// Whose buffers hosts had, if all had the same.
pub(super) fn buffers<'s>(summaries: impl IntoIterator<Item = &'s Summary>) -> Option<String> {
    let cells = summaries.into_iter().flat_map(|summary| &summary.cells);
    let measured = cells.filter(|cell| !cell.arms.is_empty());
    let mut had = measured.map(|cell| cell.as_measured().hosts.buffers);
    let first = had.next()?;
    had.all(|buffers| buffers == first).then(|| match first {
        Buffers::Large => {
            "Hosts had TCP buffers that are large from the start, so that they never bind."
                .to_owned()
        }
        Buffers::Auto | Buffers::Linux => {
            let series = Buffers::LINUX_SERIES;
            format!("Hosts had the TCP buffers of Linux {series}, on whatever kernel.")
        }
    })
}

/// To a tenth below ten, and to thousands with their commas.
pub(super) fn digits(number: f64) -> String {
    if number < 9.95 {
        let text = format!("{number:.1}");
        return text.trim_end_matches(".0").to_owned();
    }
    grouped(number.round() as usize)
}

/// Thousands with their commas: `14,480`.
pub(super) fn grouped(number: usize) -> String {
    let text = number.to_string();
    let mut out = String::new();
    for (index, digit) in text.chars().enumerate() {
        if index > 0 && (text.len() - index).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}
