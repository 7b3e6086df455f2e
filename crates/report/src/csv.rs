//! The summary as CSV.

use std::time::Duration;

use super::escape::csv_field;
use super::json::{milliseconds, percent};
use lastbyte_results::{
    ArmSummary, CellSummary, Estimate, Measured, Metric, MetricSummary, Pairing, Percent,
    Percentile, Role, Since, Summary, Validity,
};
use lastbyte_study::{Cell, Parameter, ParameterColumn, ParameterValue};

/// One line for each cell, arm and metric, after a line with the names of the fields: what was
/// measured, then for each percentile its time in milliseconds, its increase over the baseline in
/// percent, the ends of their intervals, and what of the time is the network's and what is computing, where that is
/// known. Where there are saved results, follow their name,
/// whether connections are paired, and for each percentile its change in percent. A field is empty
/// where there is no number.
pub fn csv(summary: &Summary) -> String {
    let mut csv = ::csv::Writer::from_writer(Vec::new());
    let mut write = |fields: Vec<String>| {
        // Writing to memory cannot fail, and all records are made to have one length.
        let _ = csv.write_record(fields);
    };
    let mut titles = names(&summary.percentiles);
    if summary.since.is_some() {
        titles.extend(change_names(&summary.percentiles));
    }
    write(titles);
    for cell in &summary.cells {
        for arm in &cell.arms {
            for metric in cell.cell.all_metrics().iter().copied() {
                let mut fields = fields(cell, arm, metric, &summary.percentiles);
                if let Some(since) = &summary.since {
                    fields.extend(change_fields(since, arm, metric, &summary.percentiles));
                }
                write(fields);
            }
        }
    }
    String::from_utf8(csv.into_inner().unwrap_or_default()).unwrap_or_default()
}

fn names(percentiles: &[Percentile]) -> Vec<String> {
    const ESTIMATES: [&str; 8] = [
        "ms",
        "low_ms",
        "high_ms",
        "increase_percent",
        "increase_low_percent",
        "increase_high_percent",
        "network_ms",
        "computing_ms",
    ];
    const LINK: [&str; 9] = [
        "rtt_ms",
        "forward_rate_bps",
        "backward_rate_bps",
        "forward_loss",
        "backward_loss",
        "forward_loss_model",
        "backward_loss_model",
        "forward_jitter_ms",
        "backward_jitter_ms",
    ];
    const SAMPLE: [&str; 7] = [
        "arm",
        "baseline",
        "contents",
        "valid",
        "connections",
        "failed",
        "metric",
    ];
    let estimates = percentiles.iter().flat_map(|percentile| {
        ESTIMATES
            .iter()
            .map(move |name| format!("{percentile}_{name}"))
    });
    let parameters = Parameter::columns().map(|(parameter, column)| name(parameter, column));
    (LINK.map(str::to_owned).into_iter())
        .chain(parameters)
        .chain(SAMPLE.map(str::to_owned))
        .chain(estimates)
        .collect()
}

fn change_names(percentiles: &[Percentile]) -> impl Iterator<Item = String> {
    const CHANGES: [&str; 3] = [
        "change_percent",
        "change_low_percent",
        "change_high_percent",
    ];
    let changes = percentiles.iter().flat_map(|percentile| {
        let name = move |name: &str| format!("{percentile}_{name}");
        CHANGES.into_iter().map(name)
    });
    ["since", "paired"]
        .map(str::to_owned)
        .into_iter()
        .chain(changes)
}

fn change_fields(
    since: &Since,
    arm: &ArmSummary,
    metric: Metric,
    percentiles: &[Percentile],
) -> Vec<String> {
    let paired = since.pairing == Pairing::ByConnection;
    let mut fields = vec![csv_field(&since.name), paired.to_string()];
    for percentile in percentiles {
        let change = arm.metric(metric).changes.get(percentile);
        fields.extend(estimate(change, |change| percent(change).to_string()));
    }
    fields
}

fn fields(
    cell: &CellSummary,
    arm: &ArmSummary,
    metric: Metric,
    percentiles: &[Percentile],
) -> Vec<String> {
    let link = &cell.cell.link;
    let both = [&link.forward, &link.backward];
    let mut fields = vec![milliseconds(link.rtt()).to_string()];
    fields.extend(both.map(|way| {
        way.rate
            .map_or(String::new(), |rate| rate.bits_per_second().to_string())
    }));
    fields.extend(both.map(|way| way.loss.mean().fraction().to_string()));
    fields.extend(both.map(|way| way.loss.model().unwrap_or_default()));
    fields.extend(both.map(|way| milliseconds(way.jitter).to_string()));
    let (parameters, as_measured) = (Parameter::columns(), cell.as_measured());
    fields.extend(parameters.map(|(parameter, _)| field(parameter, &as_measured)));
    fields.extend([
        csv_field(&arm.label),
        (arm.role == Role::Baseline).to_string(),
        arm.engine.contents().to_string(),
        (arm.validity == Validity::Valid).to_string(),
        arm.connections.to_string(),
        arm.failed().to_string(),
        metric.to_string(),
    ]);
    let of_metric = arm.metric(metric);
    let MetricSummary {
        percentiles: times,
        increases,
        ..
    } = of_metric;
    for percentile in percentiles {
        fields.extend(estimate(times.get(percentile), |time: Duration| {
            milliseconds(time).to_string()
        }));
        fields.extend(estimate(increases.get(percentile), |increase: Percent| {
            percent(increase).to_string()
        }));
        let shares = of_metric.shares(*percentile);
        fields.extend(shares.map_or([const { String::new() }; 2], |shares| {
            let computing = shares.cpu.as_nanos() as f64 / 1e6;
            [milliseconds(shares.network), computing].map(|time| time.to_string())
        }));
    }
    fields
}

/// A time is in milliseconds.
fn name(parameter: Parameter, column: &ParameterColumn) -> String {
    if column.name.ends_with("_ns") {
        format!("{parameter}_ms")
    } else {
        column.name.to_owned()
    }
}

fn field(parameter: Parameter, cell: &Cell) -> String {
    match parameter.value(cell) {
        Some(ParameterValue::Bytes(bytes)) => bytes.0.to_string(),
        Some(ParameterValue::Time(time)) => milliseconds(time).to_string(),
        _ => parameter.of(cell),
    }
}

fn estimate<T: Copy>(measured: Option<&Measured<T>>, text: fn(T) -> String) -> [String; 3] {
    let Some(Ok(Estimate { value, interval })) = measured else {
        return Default::default();
    };
    [Some(*value), interval.low, interval.high].map(|number| number.map_or(String::new(), text))
}
